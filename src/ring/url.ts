import { readFileSync } from 'node:fs';
import { CroreError } from '../errors.js';
import { redactUrl } from '../redact.js';

/** The parsed location of a ring; `shown` is the version for people, without the password. */
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

/**
 * The parts of all our URLs. Our own pattern, because Node rejects URLs with several hosts and its parser adds 0.5 ms
 * to a start.
 */
const PARTS = /^([a-z+]+):\/\/(?:([^?]*)@)?([^/?@]*)(\/[^?]*)?(?:\?(.*))?$/s;

interface Parts {
  readonly text: string;
  readonly user: string;
  readonly hosts: string;
  readonly path: string;
  readonly query: ReadonlyMap<string, string>;
}

/**
 * `redis://`, `rediss://`, `unix://` or a path, `redis+sentinel://`, `redis+cluster://`, `sqlite:FILE`, or `@FILE` that
 * contains one.
 */
export function parseUrl(given: string): Target {
  const text = given.startsWith('@') ? fromFile(given.slice(1)) : given;
  if (text.startsWith('sqlite:')) return sqliteTarget(text);
  const found = PARTS.exec(text.startsWith('/') ? `unix://${text}` : text);
  if (!found) throw bad(text, 'it is not a URL');
  const [, scheme, user = '', hosts = '', path = '', query = ''] = found;
  const parts = { text, user, hosts, path, query: pairs(query, text) };
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
    default:
      throw bad(text, `unknown scheme ${scheme}:`);
  }
}

/** Names a part of a URL in an error message, or uses `otherwise` if the URL may contain a secret. */
function named(part: string, text: string, otherwise: string): string {
  return redactUrl(text) === text ? part : otherwise;
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

function decode(part: string, text: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw bad(text, 'a percent sign is not followed by two hex digits');
  }
}

function pairs(query: string, text: string): Map<string, string> {
  const pair = (each: string): [string, string] => {
    const [name = '', ...value] = each.split('=');
    return [name, decode(value.join('='), text)];
  };
  return new Map(query === '' ? [] : query.split('&').map(pair));
}

function sqliteTarget(text: string): FileTarget {
  const file = text.slice('sqlite:'.length);
  if (file === '') throw bad(text, 'no file is named');
  return { kind: 'sqlite', shown: text, file };
}

function login({ user, text }: Parts, database: string): Login {
  if (!/^\d{0,5}$/.test(database)) throw bad(text, `the database${named(` ${database}`, text, '')} is not a number`);
  const [name = '', ...password] = user.split(':');
  return { user: decode(name, text), password: decode(password.join(':'), text), db: Number(database || '0') };
}

function socketTarget(parts: Parts, tls: SocketTarget['tls']): SocketTarget {
  const database = parts.path.slice(1) || (parts.query.get('db') ?? '');
  const where = hostAndPort(parts.hosts, 6379, parts.text);
  return { kind: 'socket', shown: redactUrl(parts.text), ...login(parts, database), ...where, path: '', tls };
}

function tlsFiles({ query }: Parts): SocketTarget['tls'] {
  return Object.fromEntries(
    ['ca', 'cert', 'key'].flatMap((name) => (query.has(name) ? [[name, query.get(name)]] : [])),
  );
}

function unixTarget(parts: Parts): SocketTarget {
  const path = decode(parts.path, parts.text);
  if (path.length < 2) throw bad(parts.text, 'no socket is named');
  const common = { kind: 'socket', host: '', port: 0, tls: undefined } as const;
  return { ...common, shown: redactUrl(parts.text), path, ...login(parts, parts.query.get('db') ?? '') };
}

function manyTarget(parts: Parts, sentinel: boolean): ManyTarget {
  const path = parts.path.split('/').filter(Boolean);
  const name = sentinel ? decode(path.shift() ?? '', parts.text) : '';
  if (sentinel && name === '') {
    throw bad(parts.text, 'the name of the primary is missing, as in redis+sentinel://host:26379/NAME');
  }
  return {
    kind: sentinel ? 'sentinel' : 'cluster',
    shown: redactUrl(parts.text),
    hosts: parts.hosts.split(',').map((each) => hostAndPort(each, sentinel ? 26379 : 6379, parts.text)),
    name,
    ...login(parts, path[0] ?? ''),
  };
}

function hostAndPort(each: string, usual: number, text: string): { host: string; port: number } {
  const found = /^(\[[^\]]+\]|[^:]*)(?::(\d+))?$/.exec(each);
  const port = Number(found?.[2] ?? usual);
  if (!found || port < 1 || port > 65_535) throw bad(text, `${named(each, text, 'a host')} is not host:port`);
  return { host: found[1]!.replace(/^\[|\]$/g, '') || 'localhost', port };
}
