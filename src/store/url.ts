import { CroreError } from '../errors.js';
import { redactUrl } from '../redact.js';
import { decodePart, parseHosts, splitUrl, type UrlParts } from '../url.js';

/** The location of a store. Passwords stay in this object and never appear in messages: see `redact`. */
export type StoreUrl =
  /** `relaxed`: commits do not wait for the disk, so a power failure may lose the last ones. */
  | { kind: 'sqlite'; file: string; relaxed?: true }
  /** A job server. */
  | { kind: 'grpc'; host: string; port: number; tls?: TlsFiles; token?: string }
  | {
      kind: 'redis';
      mode: 'single' | 'sentinel' | 'cluster';
      nodes: { host: string; port: number }[];
      /** Present for TLS, with the files named in the URL. */
      tls?: TlsFiles;
      username?: string;
      password?: string;
      db: number;
      /** Name of the primary, for Sentinel. */
      name?: string;
      prefix: string;
    }
  /** What is absent comes from the PG* variables. */
  | {
      kind: 'postgres';
      nodes: { host: string; port: number }[];
      /** The directory of a unix socket. */
      socket?: string;
      user?: string;
      password?: string;
      database?: string;
      schema: string;
      sslmode?: string;
      tls?: TlsFiles;
      /** Whether statements are prepared once per connection. Absent: unless there is a pooler in between. */
      prepare?: boolean;
      /** Where notifications come from: the same server, a direct connection, or nowhere. Absent: unless there is a pooler in between. */
      listen?: boolean | { socket: string } | { nodes: { host: string; port: number }[] };
    };

/** PEM files: the trusted certificates, and our own certificate and key. */
export interface TlsFiles {
  ca?: string;
  cert?: string;
  key?: string;
}

export const DEFAULT_URL = 'sqlite:crore.db';

export function parseStoreUrl(url: string): StoreUrl {
  if (typeof url !== 'string' || url === '') throw new CroreError('BAD_URL', 'the store URL is empty');
  if (url.startsWith('sqlite:')) return parseSqlite(url);
  const parts = splitUrl(url, (why) => bad(url, why));
  switch (parts?.scheme) {
    case 'grpc':
    case 'grpcs':
      return parseGrpc(url, parts);
    case 'redis':
    case 'rediss':
    case 'redis+sentinel':
    case 'redis+cluster':
      return parseRedis(url, parts);
    case 'postgres':
    case 'postgresql':
      return parsePostgres(url, parts);
    default:
      throw bad(
        url,
        'is not one of sqlite:FILE, sqlite::memory:, redis://, rediss://, redis+sentinel://, redis+cluster://, postgres://, grpc://, grpcs://',
      );
  }
}

const SYNCHRONOUS = /\?synchronous=([^?]*)$/i;

/** `sqlite:FILE[?synchronous=normal]`; any other question mark belongs to the name of the file. */
function parseSqlite(url: string): StoreUrl {
  const level = SYNCHRONOUS.exec(url)?.[1]?.toLowerCase();
  if (level !== undefined && level !== 'normal' && level !== 'full')
    throw bad(url, 'has a bad synchronous: it is full or normal');
  const file = url
    .replace(SYNCHRONOUS, '')
    .slice('sqlite:'.length)
    .replace(/^\/\/(?=\/)/, '');
  if (file === '' || file.startsWith('//') || file.includes('\0'))
    throw bad(url, 'needs a file, as in sqlite:crore.db');
  return { kind: 'sqlite', file, ...(level === 'normal' ? { relaxed: true as const } : {}) };
}

function parseRedis(url: string, { scheme, user, password, hosts, path, query }: UrlParts): StoreUrl {
  const mode = scheme === 'redis+sentinel' ? 'sentinel' : scheme === 'redis+cluster' ? 'cluster' : 'single';
  const nodes = parseNodes(hosts, mode === 'sentinel' ? 26379 : 6379, url);
  if (mode === 'single' && nodes.length > 1)
    throw bad(url, 'names several hosts: use redis+cluster:// or redis+sentinel://');
  const segments = path.split('/').filter((part) => part !== '');
  const name = mode === 'sentinel' ? (segments.shift() ?? 'mymaster') : undefined;
  const { tls, prefix } = parseQuery(query, url);
  return {
    kind: 'redis',
    mode,
    nodes,
    tls: tls ?? (scheme === 'rediss' ? {} : undefined),
    username: user || undefined,
    password: password || undefined,
    db: parseDb(segments, mode, url),
    name,
    prefix,
  };
}

/** `grpc://HOST[:PORT]`, `grpcs://:TOKEN@HOST[:PORT]?ca=FILE`. */
function parseGrpc(url: string, { scheme, user, password, hosts, path, query }: UrlParts): StoreUrl {
  if (path !== '' && path !== '/') throw bad(url, 'is not grpc://HOST:PORT');
  const nodes = parseNodes(hosts, 50051, url);
  if (nodes.length > 1) throw bad(url, 'names several hosts');
  if (user !== '') throw bad(url, 'has a user name: a token goes after a colon, as in grpc://:TOKEN@host');
  const files: TlsFiles = {};
  for (const [key, value] of query) {
    if (key !== 'ca' && key !== 'cert' && key !== 'key')
      throw bad(url, `has an unknown parameter '${key}' (known: ca, cert, key)`);
    files[key] = value;
  }
  if (scheme === 'grpc' && query.size > 0) throw bad(url, 'has parameters for TLS: use grpcs://');
  return { kind: 'grpc', ...nodes[0]!, tls: scheme === 'grpcs' ? files : undefined, token: password || undefined };
}

export const DEFAULT_PORT = Number(process.env.PGPORT) || 5432;
const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'];
const SSL_FILES: Record<string, keyof TlsFiles> = { sslrootcert: 'ca', sslcert: 'cert', sslkey: 'key' };
const PG_PARAMETERS = 'schema, host, sslmode, sslrootcert, sslcert, sslkey, prepare, listen';
const FLAGS: Record<string, boolean> = { true: true, 1: true, false: false, 0: false };

/** `postgres://[USER[:PASSWORD]@][HOST[:PORT]][/DATABASE]?schema=crore`. */
function parsePostgres(url: string, { user, password, hosts, path, query }: UrlParts): StoreUrl {
  const [database, ...rest] = path.slice(1).split('/');
  if (rest.length > 0) throw bad(url, 'names more than a database');
  const result: Extract<StoreUrl, { kind: 'postgres' }> = {
    kind: 'postgres',
    nodes: hosts === '' ? [] : parseNodes(hosts, DEFAULT_PORT, url),
    user: user || undefined,
    password: password || undefined,
    database: decodePart(database!, (why) => bad(url, why)) || undefined,
    schema: 'crore',
  };
  for (const [key, value] of query) {
    if (key === 'schema') result.schema = checkSchema(value, url);
    else if (key === 'host' && value.startsWith('/')) result.socket = value;
    else if (key === 'host') result.nodes = parseNodes(value, DEFAULT_PORT, url);
    else if (key === 'sslmode' && SSL_MODES.includes(value)) result.sslmode = value;
    else if (key === 'sslmode') throw bad(url, `has an unknown sslmode (known: ${SSL_MODES.join(', ')})`);
    else if (key === 'prepare' && value in FLAGS) result.prepare = FLAGS[value];
    else if (key === 'listen') result.listen = FLAGS[value] ?? parseListen(value, url);
    else if (SSL_FILES[key]) result.tls = { ...result.tls, [SSL_FILES[key]]: value };
    else throw bad(url, `has an unknown or bad parameter '${key}' (known: ${PG_PARAMETERS})`);
  }
  return result;
}

function parseListen(value: string, url: string): { socket: string } | { nodes: { host: string; port: number }[] } {
  if (value.startsWith('/')) return { socket: value };
  return { nodes: parseNodes(value, DEFAULT_PORT, url) };
}

/** The server would cut off a longer name, and reserves those with pg_. */
function checkSchema(name: string, url: string): string {
  if (name === '' || Buffer.byteLength(name) > 63 || name.includes('\0') || name.startsWith('pg_'))
    throw bad(url, 'has a bad schema: it needs 1 to 63 bytes, and must not begin with pg_');
  return name;
}

function parseNodes(hosts: string, defaultPort: number, url: string): { host: string; port: number }[] {
  return parseHosts(hosts, defaultPort, (host) => bad(url, `has a bad host or port${quoted(host, url)}`));
}

function parseDb(segments: string[], mode: string, url: string): number {
  if (segments.length === 0) return 0;
  const [db, ...rest] = segments;
  if (mode === 'cluster' || rest.length > 0 || !/^\d{1,5}$/.test(db!))
    throw bad(url, `has a bad database${quoted(segments.join('/'), url)}`);
  return Number(db);
}

function parseQuery(query: UrlParts['query'], url: string): { tls?: TlsFiles; prefix: string } {
  const result: { tls?: TlsFiles; prefix: string } = { prefix: 'crore' };
  for (const [key, value] of query) {
    if (key === 'prefix') result.prefix = value;
    else if (key === 'tls') result.tls = value === '1' || value === 'true' ? (result.tls ?? {}) : undefined;
    else if (key === 'ca' || key === 'cert' || key === 'key') result.tls = { ...result.tls, [key]: value };
    else throw bad(url, `has an unknown parameter '${key}' (known: prefix, tls, ca, cert, key)`);
  }
  return result;
}

/** Quotes a part of a URL, unless it may be a secret. */
function quoted(part: string, url: string): string {
  return redactUrl(url) === url ? ` '${part}'` : '';
}

function bad(url: string, why: string): CroreError {
  return new CroreError('BAD_URL', `store URL '${redactUrl(url)}' ${why}`);
}
