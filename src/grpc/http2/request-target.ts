import { isIPv6 } from 'node:net';

/** The host a request is addressed to, according to its headers. */
export interface Authority {
  /** Without brackets, in lower case. */
  host: string;
  port?: number;
}

const LONGEST = 4_096;
const PATH = /^\/(?!\/)[\x21-\x7e]*$/;
const NAMED = /^([a-z0-9]([a-z0-9._-]{0,252}[a-z0-9.])?)(?::(\d{1,5}))?$/i;
const BRACKETED = /^\[([0-9a-f:.]+)\](?::(\d{1,5}))?$/i;
/** Node's HTTP/2 client leaves out the brackets. */
const BARE_IPV6 = /^([0-9a-f:.]*:[0-9a-f.]*):(\d{1,5})$/i;

/** The path of a request without its query; undefined if it cannot be served. */
export function pathOf(target: string | undefined): string | undefined {
  if (target === undefined || target.length > LONGEST || !PATH.test(target)) return undefined;
  const query = target.search(/[?#]/);
  return query < 0 ? target : target.slice(0, query);
}

/** Parses `:authority` or `Host`; undefined if it is neither a name nor an address with an optional port. */
export function authorityOf(text: string): Authority | undefined {
  const named = NAMED.exec(text);
  if (named) return withPort(named[1]!, named[3]);
  const address = BRACKETED.exec(text) ?? BARE_IPV6.exec(text);
  return address && isIPv6(address[1]!) ? withPort(address[1]!, address[2]) : undefined;
}

function withPort(host: string, digits: string | undefined): Authority | undefined {
  const port = digits === undefined ? undefined : Number(digits);
  return port !== undefined && port > 65_535 ? undefined : { host: host.toLowerCase(), port };
}

/** Whether a name can only refer to this machine. */
export function isOfThisMachine({ host }: Authority): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
