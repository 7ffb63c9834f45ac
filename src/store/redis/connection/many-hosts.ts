import { Cluster, Command, Redis, type RedisOptions } from 'ioredis';
import type { Arg } from './client.js';
import { bounds, type RedisUrl, readFiles, type Send } from './connect.js';
import { encode } from './resp.js';

/** Where the keys begin in a call of a script. */
const KEYS_AT = 2;

/** Sentinel and Cluster need a client that follows the primary, so only their users load one. */
export function connectToMany(url: RedisUrl, timeout: number, offlineQueue: boolean): Redis | Cluster {
  const common: RedisOptions = {
    username: url.username,
    password: url.password,
    disableClientInfo: true,
    ...bounds(timeout, offlineQueue),
    ...(url.tls ? { tls: readFiles(url.tls) } : {}),
  };
  if (url.mode === 'cluster') {
    return new Cluster(url.nodes, {
      redisOptions: common,
      enableOfflineQueue: offlineQueue,
      lazyConnect: true,
      slotsRefreshTimeout: timeout,
      clusterRetryStrategy: (times) => Math.min(100 * times, 1_000),
    });
  }
  const { nodes: sentinels, name, db } = url;
  return new Redis({ ...common, sentinels, name, db, failoverDetector: true, lazyConnect: true });
}

/** Sends scripts as bytes, and the commands of one callback with one system call if there is one socket. */
export function sendingTo(redis: Redis | Cluster): Send {
  return (command, args) => {
    if ('stream' in redis) gather(redis);
    if (!command.startsWith('EVAL')) return redis.callBuffer(command, args);
    const keys = KEYS_AT + Number(args[1]);
    return redis.sendCommand(new WrittenCommand(command, args, keys)) as Promise<unknown>;
  };
}

function gather({ stream }: Redis): void {
  if (!stream || stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
}

/** A command as bytes. The library knows the first arguments, because it looks for keys among them. */
class WrittenCommand extends Command {
  readonly #bytes: Buffer;

  constructor(name: string, args: Arg[], keys: number) {
    super(name, args.slice(0, keys), { replyEncoding: null });
    this.#bytes = encode([name, ...args]);
  }

  override toWritable(): Buffer {
    return this.#bytes;
  }
}
