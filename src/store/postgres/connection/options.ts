import { readFileSync } from 'node:fs';
import { checkServerIdentity } from 'node:tls';
import type { Options, PostgresType } from 'postgres';
import { CroreError } from '../../../errors.js';
import { DEFAULT_PORT, type StoreUrl } from '../../url.js';

export type PostgresUrl = Extract<StoreUrl, { kind: 'postgres' }>;
export type DriverOptions = Options<{ bigint: PostgresType<number> }>;

/** How many connections a process opens at most, besides the one that listens. Calls that find them busy are sent behind others. */
const CONNECTIONS = 4;

/** What the URL leaves out, the driver takes from the PG* variables of the environment. */
export function driverOptions(url: PostgresUrl, timeout: number): DriverOptions {
  const { user, password, database } = url;
  const given = { user, password, database, ...place(url), ssl: secure(url) };
  return {
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    max: CONNECTIONS,
    max_lifetime: null,
    ...(url.nodes.length > 1 ? { target_session_attrs: 'read-write' } : {}),
    connect_timeout: Math.max(1, Math.ceil(timeout / 1_000)),
    fetch_types: false,
    backoff: (retries: number) => Math.min(0.01 * 2 ** Math.min(retries, 8), 1),
    onnotice: () => {},
    connection: { application_name: 'crore' },
    types: { bigint: { to: 20, from: [20], serialize: (value: number) => String(value), parse: Number } },
  } as DriverOptions;
}

/** For the connection that listens: the one that the URL names for it, else one as all others, but not behind a pooler. Undefined if none listens. */
export function listenerOptions(url: PostgresUrl, timeout: number, pooled: boolean): DriverOptions | undefined {
  const { listen = !pooled } = url;
  if (listen === false) return undefined;
  return driverOptions(listen === true ? url : { ...url, socket: undefined, ...listen }, timeout);
}

function place({ socket, nodes }: PostgresUrl): { path?: string; host?: string[]; port?: number[] } {
  if (socket !== undefined) return { path: `${socket}/.s.PGSQL.${nodes[0]?.port ?? DEFAULT_PORT}` };
  if (nodes.length === 0) return {};
  return { host: nodes.map(({ host }) => host), port: nodes.map(({ port }) => port) };
}

/** The modes of libpq. With `require` and less, the certificate of the server is not checked unless a file with trusted ones is given. */
function secure({ sslmode, tls, nodes }: PostgresUrl): DriverOptions['ssl'] {
  if (sslmode === 'disable') return false;
  const files = tls && { ca: pem(tls.ca, 'sslrootcert'), cert: pem(tls.cert, 'sslcert'), key: pem(tls.key, 'sslkey') };
  if (sslmode === 'verify-full') return { ...files, checkServerIdentity: identityOf(nodes) };
  if (sslmode === 'verify-ca' || files?.ca) return { ...files, checkServerIdentity: () => undefined };
  if (files) return { ...files, rejectUnauthorized: false };
  return sslmode as DriverOptions['ssl'];
}

/** The driver does not tell Node the address if it is an IP address, and the certificate would be compared with `localhost`. */
function identityOf(nodes: PostgresUrl['nodes']): typeof checkServerIdentity {
  const hosts = nodes.length > 0 ? nodes.map(({ host }) => host) : [process.env.PGHOST || 'localhost'];
  return (_host, certificate) => {
    const problems = hosts.map((host) => checkServerIdentity(host, certificate));
    return problems.includes(undefined) ? undefined : problems[0];
  };
}

function pem(file: string | undefined, name: string): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CroreError('BAD_URL', `cannot read the ${name} file '${file}': ${(error as Error).message}`, {
      cause: error,
    });
  }
}
