import { randomUUID } from 'node:crypto';
import { checkInteger, checkName, checkOptions, describe } from '../engine/input/check.js';
import type { SweepPolicy } from '../engine/maintenance.js';
import { CroreError } from '../errors.js';
import { redactUrl } from '../redact.js';
import { openClients, openStore } from '../store/open.js';
import type { RawTaskStore } from '../store/raw-store.js';
import { isNodeRedis } from '../store/redis/connection/node-redis.js';
import { parseStoreUrl } from '../store/url.js';

/**
 * A connection of the application: from ioredis (a single server, Sentinel or Cluster), or from node-redis 4 or newer.
 */
export interface GivenClient {
  duplicate(...args: never[]): unknown;
}

/** The address of Redis, or connections to it. */
export interface WorqrRedisOptions {
  /** Default localhost. */
  host?: string;
  /** Default 6379. */
  port?: number;
  username?: string;
  password?: string;
  db?: number;
  /** For commands; stays open when the instance is closed. */
  data?: GivenClient;
  /** For pub/sub, so it must be a different connection than `data`; stays open when the instance is closed. */
  subscribe?: GivenClient;
}

export interface WorqrOptions {
  /** Instances with the same prefix share their queues; default `worqr`. */
  redisKeyPrefix?: string;
  /** Default random. */
  workerId?: string;
  /**
   * Seconds without a heartbeat after which a worker is dead; default 3. Negative: a permanent worker that never
   * expires.
   */
  workerTimeout?: number;
  /** Milliseconds between heartbeats; default 1000. */
  workerHeartbeatInterval?: number;
  /** Milliseconds between checks for dead workers of other queues; default 10000. */
  workerCleanupInterval?: number;
  /** Emits `debug` with the state of this instance; default false. */
  debugMode?: boolean;
  /** Milliseconds between `debug` events; default 1000. */
  debugInterval?: number;
  /** Delivers tasks as Buffers instead of strings; default false. */
  binary?: boolean;
  /** Time limit of any call to the store in milliseconds; default 10000. */
  timeout?: number;
}

export interface ResolvedOptions {
  open: () => Promise<RawTaskStore>;
  workerId: string;
  /** Milliseconds; a century for a permanent worker. */
  lease: number;
  permanent: boolean;
  heartbeatEvery: number;
  cleanup: number;
  /** Milliseconds between `debug` events, if enabled. */
  debug: number | undefined;
  binary: boolean;
  timeout: number;
}

/**
 * Maximum time between sweeps of a queue that is worked on, and the longest gap between them that does not count as an
 * outage.
 */
const SWEEP = 1_000;
const STANDSTILL = 3_000;

const DEFAULTS = Object.freeze({
  redisKeyPrefix: 'worqr',
  workerTimeout: 3,
  workerHeartbeatInterval: 1_000,
  workerCleanupInterval: 10_000,
  debugInterval: 1_000,
  timeout: 10_000,
});

const KNOWN = [
  'redisKeyPrefix',
  'workerId',
  'workerTimeout',
  'workerHeartbeatInterval',
  'workerCleanupInterval',
  'debugMode',
  'debugInterval',
  'binary',
  'timeout',
] as const;

const PLACES = ['host', 'port', 'username', 'password', 'db'] as const;
const KNOWN_REDIS = [...PLACES, 'data', 'subscribe'] as const;
const CENTURY = 100 * 365 * 86_400_000;
/** The maximum delay of a timer. */
const LONGEST = 2 ** 31 - 1;

export function resolveOptions(redis: string | WorqrRedisOptions, options: WorqrOptions): ResolvedOptions {
  checkOptions(options, KNOWN, 'Worqr options');
  const ms = (name: 'workerHeartbeatInterval' | 'workerCleanupInterval' | 'debugInterval' | 'timeout') =>
    checkInteger(options[name] ?? DEFAULTS[name], name, 1, LONGEST);
  const { lease, permanent } = resolveLease(options.workerTimeout ?? DEFAULTS.workerTimeout);
  const beat = ms('workerHeartbeatInterval');
  if (beat >= lease) {
    const text = `workerHeartbeatInterval (${beat} ms) must be shorter than workerTimeout (${lease} ms)`;
    throw new CroreError('BAD_OPTION', text);
  }
  const timeout = ms('timeout');
  const debugInterval = ms('debugInterval');
  return {
    open: resolveOpener(redis, options.redisKeyPrefix, timeout),
    workerId: options.workerId === undefined ? randomUUID() : checkName(options.workerId, 'workerId'),
    lease,
    permanent,
    heartbeatEvery: beat,
    cleanup: ms('workerCleanupInterval'),
    debug: checkFlag(options.debugMode, 'debugMode') ? debugInterval : undefined,
    binary: checkFlag(options.binary, 'binary'),
    timeout,
  };
}

/** How an instance sweeps queues: often enough that a gap between sweeps indicates an outage of the store. */
export function sweepPolicyOf({ lease, cleanup }: ResolvedOptions): SweepPolicy {
  const standstill = Math.min(lease, STANDSTILL);
  const sweep = Math.max(5, Math.min(SWEEP, cleanup, Math.floor(standstill / 3)));
  return { lease: standstill, sweep, maxCrashes: 3 };
}

function resolveLease(seconds: number): { lease: number; permanent: boolean } {
  if (typeof seconds !== 'number' || !Number.isFinite(seconds) || seconds === 0 || seconds > LONGEST / 1_000) {
    const text = `workerTimeout must be seconds, or negative for a worker that never expires, not ${describe(seconds)}`;
    throw new CroreError('BAD_OPTION', text);
  }
  return seconds < 0
    ? { lease: CENTURY, permanent: true }
    : { lease: Math.max(1, Math.round(seconds * 1_000)), permanent: false };
}

function checkFlag(value: unknown, name: string): boolean {
  if (value === undefined || typeof value === 'boolean') return value === true;
  throw new CroreError('BAD_OPTION', `${name} must be true or false, not ${describe(value)}`);
}

/** Validates all options before anything is opened. */
function resolveOpener(
  redis: string | WorqrRedisOptions,
  prefix: string | undefined,
  timeout: number,
): () => Promise<RawTaskStore> {
  if (prefix !== undefined) checkPrefix(prefix);
  if (typeof redis === 'string') return openerOfUrl(redis, prefix, timeout);
  checkOptions(redis, KNOWN_REDIS, 'Worqr Redis options');
  if (redis.data === undefined && redis.subscribe === undefined) {
    return openerOfUrl(toUrl(redis), prefix, timeout);
  }
  const clients = { data: checkClient(redis.data, 'data'), subscribe: checkClient(redis.subscribe, 'subscribe') };
  if (clients.data === clients.subscribe) {
    throw new CroreError(
      'BAD_OPTION',
      'data and subscribe must be separate connections: a connection in pub/sub mode takes no commands',
    );
  }
  // The address for a connection to create; next to two given ones it is unused, but the original requires it.
  const address = PLACES.some((name) => redis[name] !== undefined) ? parseStoreUrl(toUrl(redis)) : undefined;
  return () => openClients({ ...clients, url: address } as never, prefix ?? DEFAULTS.redisKeyPrefix, { timeout });
}

function checkPrefix(prefix: unknown): void {
  if (typeof prefix === 'string' && prefix !== '' && !/[{}\0]/.test(prefix)) return;
  throw new CroreError('BAD_OPTION', `redisKeyPrefix ${describe(prefix)} must be a string without braces or NUL`);
}

function openerOfUrl(url: string, prefix: string | undefined, timeout: number): () => Promise<RawTaskStore> {
  const parsed = parseStoreUrl(url);
  if (parsed.kind === 'grpc')
    throw new CroreError('BAD_URL', `Worqr needs a sqlite:, redis: or postgres: store, not '${redactUrl(url)}'`);
  const open = (full: string) => openStore(full, { timeout }) as Promise<RawTaskStore>;
  if (parsed.kind !== 'redis') return () => open(url);
  const chosen = /[?&]prefix=/.test(url) ? parsed.prefix : undefined;
  if (chosen !== undefined && prefix !== undefined && chosen !== prefix) {
    const text = `the URL '${redactUrl(url)}' and redisKeyPrefix '${prefix}' name different prefixes`;
    throw new CroreError('BAD_OPTION', text);
  }
  const full =
    chosen === undefined
      ? `${url}${url.includes('?') ? '&' : '?'}prefix=${encodeURIComponent(prefix ?? DEFAULTS.redisKeyPrefix)}`
      : url;
  return () => open(full);
}

function toUrl({ host = 'localhost', port = 6379, username, password, db }: WorqrRedisOptions): string {
  if (typeof host !== 'string' || host === '' || /[/?#@,\s]/.test(host))
    throw new CroreError('BAD_OPTION', `host ${describe(host)} is not a host name or address`);
  checkInteger(port, 'port', 1, 65_535);
  if (db !== undefined) checkInteger(db, 'db', 0, 99_999);
  for (const [name, value] of Object.entries({ username, password })) {
    if (value !== undefined && value !== null && typeof value !== 'string')
      throw new CroreError('BAD_OPTION', `${name} must be a string`);
  }
  const login =
    password || username ? `${encodeURIComponent(username ?? '')}:${encodeURIComponent(password ?? '')}@` : '';
  const name = host.includes(':') ? `[${host.replace(/^\[|\]$/g, '')}]` : host;
  return `redis://${login}${name}:${port}${db === undefined ? '' : `/${db}`}`;
}

/** Clients of other libraries would fail with incomprehensible errors. */
function checkClient(client: unknown, what: string): GivenClient | undefined {
  if (client === undefined) return undefined;
  if (isNodeRedis(client)) return client;
  const { status, callBuffer, duplicate, options } = (client ?? {}) as Record<string, unknown>;
  const isOurs = typeof status === 'string' && typeof callBuffer === 'function' && typeof duplicate === 'function';
  if (!isOurs)
    throw new CroreError(
      'BAD_OPTION',
      `${what} is not a client of ioredis or of redis (node-redis 4 or newer, not a cluster)`,
    );
  const { redisOptions, ...own } = (options ?? {}) as Record<string, unknown>;
  const { keyPrefix, replyMapping, stringNumbers } = { ...(redisOptions as object), ...own } as Record<string, unknown>;
  if (keyPrefix) throw new CroreError('BAD_OPTION', `${what} has a keyPrefix: use redisKeyPrefix instead`);
  if (replyMapping === 'resp3' || stringNumbers) {
    const option = stringNumbers ? 'stringNumbers' : "replyMapping 'resp3'";
    throw new CroreError('BAD_OPTION', `${what} has ${option}: Worqr cannot read its replies`);
  }
  return client as GivenClient;
}
