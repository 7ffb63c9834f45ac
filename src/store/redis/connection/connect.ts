import { readFileSync } from 'node:fs';
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { CroreError } from '../../../errors.js';
import type { StoreUrl, TlsFiles } from '../../url.js';
import { isNodeRedis, type NodeRedisClient, NodeRedisConnection } from './node-redis.js';
import type { Subscriber } from './signals.js';

export type RedisUrl = Extract<StoreUrl, { kind: 'redis' }>;
export type Connection = Redis | Cluster;

/**
 * Connections of the application, from ioredis or node-redis. Each is used as it is, and stays open when the store is
 * closed.
 */
export interface GivenClients {
  data?: Connection | NodeRedisClient;
  subscribe?: Connection | NodeRedisClient;
  /** Where to connect a missing one; if absent, to the same server as the other. */
  url?: RedisUrl;
}

/** The two connections of a store. */
export interface Source {
  data: Connection;
  /** The application owns the data connection: it may not be ready, may queue commands, and we never close it. */
  given: boolean;
  subscriber: Subscriber;
}

export function fromUrl(url: RedisUrl, timeout: number): Source {
  // The library must not queue commands while disconnected: it would send them long after their caller got an error.
  return {
    data: connectTo(url, timeout, false),
    given: false,
    subscriber: { open: () => connectTo(url, timeout, true) },
  };
}

/** Creates a missing connection from the URL, or as a duplicate of the other one, with our own time limits. */
export function fromGiven({ data, subscribe, url }: GivenClients, timeout: number): Source {
  const given = { data: data && adapted(data), subscribe: subscribe && adapted(subscribe) };
  const make = (other: Connection, offlineQueue: boolean) =>
    url ? connectTo(url, timeout, offlineQueue) : another(other, timeout, offlineQueue);
  return {
    data: given.data ?? make(given.subscribe!, false),
    given: data !== undefined,
    subscriber: given.subscribe
      ? { open: () => given.subscribe!, given: true }
      : { open: () => make(given.data!, true) },
  };
}

/** The rest of the store only knows ioredis, and uses only the part of it that the adapter has too. */
function adapted(client: Connection | NodeRedisClient): Connection {
  return isNodeRedis(client) ? (new NodeRedisConnection(client) as unknown as Connection) : (client as Connection);
}

function another(connection: Connection, timeout: number, enableOfflineQueue: boolean): Connection {
  const client: unknown = connection;
  if (client instanceof NodeRedisConnection) return client.duplicate() as unknown as Connection;
  const options = bounds(timeout, enableOfflineQueue);
  if (isCluster(connection))
    return connection.duplicate([], { redisOptions: options, enableOfflineQueue, lazyConnect: true });
  return connection.duplicate({ ...options, lazyConnect: true });
}

export function isCluster(connection: Connection): connection is Cluster {
  return 'nodes' in connection && typeof connection.nodes === 'function';
}

/** Reads the certificates from their files. */
function readFiles(files: TlsFiles): TlsFiles {
  const contents: TlsFiles = {};
  for (const name of ['ca', 'cert', 'key'] as const) {
    const file = files[name];
    if (file === undefined) continue;
    try {
      contents[name] = readFileSync(file, 'utf8');
    } catch (error) {
      throw new CroreError('BAD_URL', `cannot read the ${name} file '${file}': ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
  return contents;
}

function bounds(timeout: number, enableOfflineQueue: boolean): RedisOptions {
  return {
    protocol: 2,
    connectTimeout: timeout,
    commandTimeout: timeout,
    socketTimeout: timeout,
    enableOfflineQueue,
    // Signals resubscribes by itself; the library's own attempt would get no reply if the connection breaks again.
    autoResubscribe: false,
    maxRetriesPerRequest: null,
    autoResendUnfulfilledCommands: false,
    retryStrategy: (times) => Math.min(10 * 2 ** Math.min(times, 8), 1_000),
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
}

function connectTo(url: RedisUrl, timeout: number, enableOfflineQueue: boolean): Connection {
  const common: RedisOptions = {
    username: url.username,
    password: url.password,
    disableClientInfo: true,
    ...bounds(timeout, enableOfflineQueue),
    ...(url.tls ? { tls: readFiles(url.tls) } : {}),
  };
  const [first] = url.nodes;
  switch (url.mode) {
    case 'single':
      return new Redis({ ...common, host: first!.host, port: first!.port, db: url.db, lazyConnect: true });
    case 'sentinel':
      return new Redis({
        ...common,
        sentinels: url.nodes,
        name: url.name,
        db: url.db,
        failoverDetector: true,
        lazyConnect: true,
      });
    case 'cluster': {
      const options: ClusterOptions = {
        redisOptions: common,
        enableOfflineQueue,
        lazyConnect: true,
        slotsRefreshTimeout: timeout,
        clusterRetryStrategy: (times) => Math.min(100 * times, 1_000),
      };
      return new Cluster(url.nodes, options);
    }
  }
}
