import { readFileSync } from 'node:fs';
import { CroreError } from '../errors.js';
import { redactUrl } from '../redact.js';
import { decodePart, parseHosts, splitUrl, type UrlParts } from '../url.js';

/** The parsed location of a ring; `shown` is the version for people, without the password. */
export type Target = SocketTarget | ManyTarget | FileTarget | PostgresTarget;

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

/** The URL is read as that of a store when the ring is opened, so that other rings do not load what that takes. */
export interface PostgresTarget {
  readonly kind: 'postgres';
  readonly shown: string;
  readonly url: string;
}

interface Parts extends UrlParts {
  readonly text: string;
}

/**
 * `redis://`, `rediss://`, `unix://` or a path, `redis+sentinel://`, `redis+cluster://`, `postgres://`, `sqlite:FILE`,
 * or `@FILE` that contains one.
 */
export function parseUrl(given: string): Target {
  const text = given.startsWith('@') ? fromFile(given.slice(1)) : given;
  if (text.startsWith('sqlite:')) return sqliteTarget(text);
  const split = splitUrl(text.startsWith('/') ? `unix://${text}` : text, (why) => bad(text, `it ${why}`));
  if (!split) throw bad(text, 'it is not a URL');
  const parts = { ...split, text };
  const { scheme } = parts;
  switch (scheme) {
    case 'redis':
    case 'valkey':
      return socketTarget(parts, undefined);
    case 'rediss':
    case 'valkeys':
      return socketTarget(parts, tlsFiles(parts));
    case 'unix':
    case 'redis+unix':
      return unixTarget(parts);
    case 'redis+sentinel':
    case 'redis+cluster':
      return manyTarget(parts, scheme === 'redis+sentinel');
    case 'postgres':
    case 'postgresql':
      return { kind: 'postgres', shown: redactUrl(text), url: text };
    default:
      throw bad(text, `unknown scheme ${scheme}:`);
  }
}

/** A host, a port and a database, and nothing that could be secret. */
const PLAIN = /^\w+:\/\/[\w.-]*(:\d{1,5})?(\/\d*)?$/;

/** Whether a URL contains something to hide. Few do, and the expressions that find it take 0.5 ms of a start to compile. */
export function hasSecret(url: string): boolean {
  return !PLAIN.test(url) && redactUrl(url) !== url;
}

/** Names a part of a URL in an error message, or uses `otherwise` if the URL may contain a secret. */
function named(part: string, text: string, otherwise: string): string {
  return hasSecret(text) ? otherwise : part;
}

function bad(text: string, why: string): CroreError {
  return new CroreError('BAD_URL', `bad URL ${redactUrl(text)}: ${why}`);
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
  if (file === '') throw bad(text, 'no file given');
  return { kind: 'sqlite', shown: text, file };
}

function login({ user, password, text }: Parts, database: string): Login {
  if (!/^\d{0,5}$/.test(database)) throw bad(text, `the database${named(` ${database}`, text, '')} is not a number`);
  return { user, password, db: Number(database || '0') };
}

function socketTarget(parts: Parts, tls: SocketTarget['tls']): SocketTarget {
  const database = parts.path.slice(1) || (parts.query.get('db') ?? '');
  const [where] = hostsOf(parts, 6379);
  const shown = hasSecret(parts.text) ? redactUrl(parts.text) : parts.text;
  return { kind: 'socket', shown, ...login(parts, database), ...where!, path: '', tls };
}

function tlsFiles({ query }: Parts): SocketTarget['tls'] {
  return Object.fromEntries(
    ['ca', 'cert', 'key'].flatMap((name) => (query.has(name) ? [[name, query.get(name)]] : [])),
  );
}

function unixTarget(parts: Parts): SocketTarget {
  const path = decodePart(parts.path, (why) => bad(parts.text, `it ${why}`));
  if (path.length < 2) throw bad(parts.text, 'no socket path given');
  const common = { kind: 'socket', host: '', port: 0, tls: undefined } as const;
  return { ...common, shown: redactUrl(parts.text), path, ...login(parts, parts.query.get('db') ?? '') };
}

function manyTarget(parts: Parts, sentinel: boolean): ManyTarget {
  const path = parts.path.split('/').filter(Boolean);
  const name = sentinel ? decodePart(path.shift() ?? '', (why) => bad(parts.text, `it ${why}`)) : '';
  if (sentinel && name === '') {
    throw bad(parts.text, 'the name of the primary is missing, as in redis+sentinel://host:26379/NAME');
  }
  return {
    kind: sentinel ? 'sentinel' : 'cluster',
    shown: redactUrl(parts.text),
    hosts: hostsOf(parts, sentinel ? 26379 : 6379),
    name,
    ...login(parts, path[0] ?? ''),
  };
}

function hostsOf({ hosts, text }: Parts, defaultPort: number): { host: string; port: number }[] {
  return parseHosts(hosts, defaultPort, (host) => bad(text, `${named(host, text, 'a host')} is not host:port`));
}
