import { readFileSync } from 'node:fs';
import { CroreError } from '../errors.js';

/** Where a ring lives, taken apart; `shown` is the same for people, without the password. */
export type Target = SocketTarget | ManyTarget | FileTarget;

export interface Login {
  readonly user: string;
  readonly password: string;
  readonly db: number;
}

export interface SocketTarget extends Login {
  readonly kind: 'socket';
  readonly shown: string;
  readonly host: string;
  readonly port: number;
  /** A unix socket, instead of host and port. */
  readonly path: string;
  /** Files of a TLS connection, undefined for a plain one. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined;
}

export interface ManyTarget extends Login {
  readonly kind: 'sentinel' | 'cluster';
  readonly shown: string;
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** Sentinel: the name of the primary. */
  readonly name: string;
}

export interface FileTarget {
  readonly kind: 'sqlite';
  readonly shown: string;
  readonly file: string;
}

/** Hides the password wherever a URL may stand in a text; greedy on purpose, as a password may hold an `@`. */
export function redact(text: string): string {
  const hidden = text.replace(/(\w:\/\/)([^\s:@/]*:)?\S*@/g, (_, scheme, user = '') => `${scheme}${user}***@`);
  return hidden.replace(/(password=)[^&\s]*/gi, '$1***');
}

/** `redis://`, `rediss://`, `unix://` or a path, `redis+sentinel://`, `redis+cluster://`, `sqlite:FILE`, or `@FILE` that holds one. */
export function parseUrl(given: string): Target {
  const text = given.startsWith('@') ? fromFile(given.slice(1)) : given;
  if (text.startsWith('sqlite:')) return sqliteTarget(text);
  if (text.startsWith('/')) return unixTarget(parsed(`unix://${text}`, text), text);
  const scheme = text.slice(0, text.indexOf(':'));
  if (scheme === 'redis+sentinel' || scheme === 'redis+cluster') return manyTarget(text, scheme);
  const url = parsed(text, text);
  if (scheme === 'unix' || scheme === 'redis+unix') return unixTarget(url, text);
  if (!/^(redis|valkey)s?$/.test(scheme)) throw bad(text, `unknown scheme ${scheme}:`);
  return socketTarget(url, text, scheme.endsWith('s') && scheme !== 'redis');
}

function parsed(text: string, given: string): URL {
  if (!URL.canParse(text)) throw bad(given, 'it is not a URL');
  return new URL(text);
}

function bad(text: string, why: string): CroreError {
  return new CroreError('BAD_URL', `bad URL ${redact(text)}: ${why}`);
}

function fromFile(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new CroreError('BAD_URL', `cannot read the URL from ${file}: ${(error as NodeJS.ErrnoException).code}`);
  }
}

function sqliteTarget(text: string): FileTarget {
  const file = text.slice('sqlite:'.length);
  if (file === '') throw bad(text, 'no file is named');
  return { kind: 'sqlite', shown: text, file };
}

function login(url: URL, text: string, database: string): Login {
  if (!/^\d{0,5}$/.test(database)) throw bad(text, `the database ${database} is not a number`);
  try {
    const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
    return { user, password, db: Number(database || '0') };
  } catch {
    throw bad(text, 'a percent sign in the user or password is not followed by two hex digits');
  }
}

function socketTarget(url: URL, text: string, secure: boolean): SocketTarget {
  const query = url.searchParams;
  const host = url.hostname.replace(/^\[|\]$/g, '') || 'localhost';
  const files = { ca: query.get('ca'), cert: query.get('cert'), key: query.get('key') };
  return {
    kind: 'socket',
    shown: redact(text),
    ...login(url, text, url.pathname.replace(/^\//, '') || (query.get('db') ?? '')),
    host,
    port: Number(url.port || '6379'),
    path: '',
    tls: secure ? Object.fromEntries(Object.entries(files).filter(([, file]) => file)) : undefined,
  };
}

function unixTarget(url: URL, text: string): SocketTarget {
  const path = url.pathname.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  if (path.length < 2) throw bad(text, 'no socket is named');
  const common = { kind: 'socket', host: '', port: 0, tls: undefined } as const;
  return { ...common, shown: redact(text), path, ...login(url, text, url.searchParams.get('db') ?? '') };
}

/** Several hosts are no URL any more, so they are cut out and one of them stands in for the parser. */
function manyTarget(text: string, scheme: string): ManyTarget {
  const found = /^[^/]*:\/\/(?:(.*)@)?([^/?@]+)([/?].*)?$/.exec(text);
  if (!found) throw bad(text, 'no host is named');
  const [, user, hosts, rest] = found;
  const url = parsed(`redis://${user === undefined ? '' : `${user}@`}host${rest ?? ''}`, text);
  const parts = url.pathname.split('/').filter(Boolean);
  const sentinel = scheme === 'redis+sentinel';
  const name = sentinel ? (parts.shift() ?? '') : '';
  if (sentinel && name === '')
    throw bad(text, 'the name of the primary is missing, as in redis+sentinel://host:26379/NAME');
  const port = sentinel ? 26379 : 6379;
  return {
    kind: sentinel ? 'sentinel' : 'cluster',
    shown: redact(text),
    hosts: hosts!.split(',').map((each) => hostAndPort(each, port, text)),
    name,
    ...login(url, text, parts[0] ?? ''),
  };
}

function hostAndPort(each: string, port: number, text: string): { host: string; port: number } {
  const found = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(each);
  if (!found) throw bad(text, `${each} is not host:port`);
  return { host: found[1]!.replace(/^\[|\]$/g, ''), port: Number(found[2] ?? port) };
}
