import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { CroreError } from '../../errors.js';
import { type Reply, ServerError } from '../../store/redis/connection/resp.js';
import type { ManyTarget } from '../url.js';
import type { Link } from './connection.js';
import { serverFailure, unreachable } from './failure.js';

/** The connection of one ring, whose keys must be on one node. */
export function manyHosts(target: ManyTarget, prefix: string): Link {
  if (target.kind === 'cluster' && !/\{[^}]+\}/.test(prefix)) {
    throw new CroreError(
      'BAD_OPTION',
      `key prefix '${prefix}': on a Cluster it needs a {tag} to keep the ring on one node`,
    );
  }
  return connectMany(target);
}

/** Sentinel and Cluster need a client that follows the primary, so only their users load one. */
export function connectMany(target: ManyTarget): Link {
  return new ClientLink(target.kind === 'cluster' ? cluster(target) : sentinel(target), target.shown);
}

function common({ user, password }: ManyTarget): RedisOptions {
  return { username: user || undefined, password: password || undefined, maxRetriesPerRequest: 1, lazyConnect: true };
}

function sentinel(target: ManyTarget): Redis {
  return new Redis({ ...common(target), sentinels: [...target.hosts], name: target.name, db: target.db });
}

function cluster(target: ManyTarget): Cluster {
  return new Cluster([...target.hosts], {
    lazyConnect: true,
    redisOptions: common(target),
    clusterRetryStrategy: (times) => Math.min(times * 50, 500),
  });
}

class ClientLink implements Link {
  constructor(
    private readonly client: Redis | Cluster,
    private readonly shown: string,
  ) {
    // The failing call reports the error; without a listener the client would print it.
    client.on('error', () => {});
  }

  async call(args: readonly (string | Buffer)[], within: number): Promise<Reply> {
    const [command, ...rest] = args;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${Math.round(within)} ms`)), within);
    });
    try {
      return (await Promise.race([this.client.callBuffer(String(command), rest), late])) as Reply;
    } catch (error) {
      throw this.failure(error as Error);
    } finally {
      clearTimeout(timer);
    }
  }

  post(args: readonly (string | Buffer)[]): void {
    const [command, ...rest] = args;
    if (this.client.status === 'ready') this.client.callBuffer(String(command), rest).catch(() => {});
  }

  close(): void {
    this.client.disconnect();
  }

  private failure(error: Error): CroreError {
    if (error.name === 'ReplyError') return serverFailure(this.shown, new ServerError(error.message));
    return unreachable(this.shown, error);
  }
}
