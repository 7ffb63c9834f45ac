import type { Again, Arg, RedisClient, Reply, ScriptReply } from './connection/client.js';
import type { Keys } from './keys.js';
import type { ScriptName } from './scripts.js';

/** How the parts of the store see Redis: its client, the keys, the clock, and scripts that run on one queue. */
export class View {
  constructor(
    readonly client: RedisClient,
    readonly keys: Keys,
    /** The server's clock minus ours. */
    private readonly skew: number,
    /** Replaces the server's clock in tests. */
    private readonly clock?: () => number,
  ) {}

  now(): number {
    return this.clock ? this.clock() : Date.now() + this.skew;
  }

  /** The time in the form that scripts take. Empty: the script uses the server's clock. */
  time(): string {
    return this.clock ? String(this.clock()) : '';
  }

  run(name: ScriptName, queue: string, args: Arg[], again: Again = true): Promise<ScriptReply> {
    const { list, stem } = this.keys.queue(queue);
    return this.client.run(name, [list, stem], args, again);
  }
}

export function text(reply: Reply): string {
  return reply === null ? '' : String(reply);
}
