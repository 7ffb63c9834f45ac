import { readFileSync } from 'node:fs';
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { CroreError } from '../../../errors.js';
import type { StoreUrl, TlsFiles } from '../../url.js';
import type { Arg } from './client.js';
import { isNodeRedis, type NodeRedisClient, NodeRedisConnection } from './node-redis.js';
import type { Subscriber } from './signals.js';
import { SocketConnection } from './socket-connection.js';

export type RedisUrl = Extract<StoreUrl, { kind: 'redis' }>;

/** Takes whatever its event brings: a method, so that its arguments may have any type. */
type Listener = { on(...args: unknown[]): void }['on'];

/** What a store needs of a connection: our own to one server, or a client of ioredis, or an adapted one of node-redis. */
export interface Connection {
  readonly status: string;
  connect(): Promise<unknown>;
  disconnect(again?: boolean): void;
  callBuffer(command: string, args: Arg[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** That the server still answers; not of every library. */
  ping?(): Promise<unknown>;
  on(event: string, listener: Listener): Connection;
  off(event: string, listener: Listener): Connection;
}

/** Sends one command. */
export type Send = (command: string, args: Arg[]) => Promise<unknown>;

interface Opener {
  open: (offlineQueue: boolean) => Connection;
  /** Absent: by its `callBuffer`. */
  sendingTo?: (connection: Connection) => Send;
}

/**
 * Connections of the application, from ioredis or node-redis. Each is used as it is, and stays open when the store is
 * closed.
 */
export interface GivenClients {
  data?: Redis | Cluster | NodeRedisClient;
  subscribe?: Redis | Cluster | NodeRedisClient;
  /** Where to connect a missing one; if absent, to the same server as the other. */
  url?: RedisUrl;
}

/** The two connections of a store. */
export interface Source {
  data: Connection;
  /** The application owns the data connection: it may not be ready, may queue commands, and we never close it. */
  given: boolean;
  subscriber: Subscriber;
  /** How commands are sent on the data connection; absent: by its `callBuffer`. */
  send?: Send;
}

export async function fromUrl(url: RedisUrl, timeout: number): Promise<Source> {
  const { open, sendingTo } = await opener(url, timeout);
  // The library must not queue commands while disconnected: it would send them long after their caller got an error.
  const data = open(false);
  return { data, given: false, subscriber: { open: () => open(true) }, ...(sendingTo && { send: sendingTo(data) }) };
}

/** Creates a missing connection from the URL, or as a duplicate of the other one, with our own time limits. */
export async function fromGiven({ data, subscribe, url }: GivenClients, timeout: number): Promise<Source> {
  const own = url && (await opener(url, timeout));
  const given = { data: data && adapted(data), subscribe: subscribe && adapted(subscribe) };
  const make = (other: Connection, offlineQueue: boolean) =>
    own ? own.open(offlineQueue) : another(other, timeout, offlineQueue);
  return {
    data: given.data ?? make(given.subscribe!, false),
    given: data !== undefined,
    subscriber: given.subscribe
      ? { open: () => given.subscribe!, given: true }
      : { open: () => make(given.data!, true) },
  };
}

/** The rest of the store only knows ioredis, and uses only the part of it that the adapter has too. */
function adapted(client: Redis | Cluster | NodeRedisClient): Connection {
  return isNodeRedis(client) ? new NodeRedisConnection(client) : client;
}

function another(connection: Connection, timeout: number, enableOfflineQueue: boolean): Connection {
  if (connection instanceof NodeRedisConnection) return connection.duplicate();
  const options = bounds(timeout, enableOfflineQueue);
  if (isCluster(connection))
    return connection.duplicate([], { redisOptions: options, enableOfflineQueue, lazyConnect: true });
  return (connection as Redis).duplicate({ ...options, lazyConnect: true });
}

export function isCluster(connection: Connection): connection is Connection & Cluster {
  return 'nodes' in connection && typeof connection.nodes === 'function';
}

/** Reads the certificates from their files. */
export function readFiles(files: TlsFiles): TlsFiles {
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

/** What a store needs of a connection of ioredis. */
export function bounds(timeout: number, enableOfflineQueue: boolean): RedisOptions {
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

/** Creates connections to the servers of a URL. With an offline queue, subscriptions wait for the connection. */
async function opener(url: RedisUrl, timeout: number): Promise<Opener> {
  if (url.mode === 'single') return { open: () => connectTo(url, timeout) };
  const { connectToMany, sendingTo } = await import('./many-hosts.js');
  return {
    open: (offlineQueue) => connectToMany(url, timeout, offlineQueue),
    sendingTo: sendingTo as Opener['sendingTo'],
  };
}

function connectTo({ nodes: [first], tls, username, password, db }: RedisUrl, timeout: number): Connection {
  const address = { host: first!.host, port: first!.port, path: '', tls: tls && readFiles(tls) };
  return new SocketConnection(address, { username, password, db }, timeout);
}
