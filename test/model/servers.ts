import { Redis } from 'ioredis';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { Line } from '../support/proxy.js';

/** The servers behind the stores, and what can happen to them without anybody noticing. */
export class Servers {
  readonly #lines: Line[] = [];
  readonly #redis: Redis;

  constructor(redisUrl: string) {
    this.#redis = new Redis(redisUrl);
  }

  /** Opens a store whose connections can be cut. */
  async open(url: string, options: { timeout: number; clock: () => number }): Promise<Store> {
    const through = new URL(url);
    const line = await Line.to(Number(through.port));
    this.#lines.push(line);
    through.port = String(line.port);
    return openStore(through.href, options);
  }

  /** The first reply from now on is lost with its connection. */
  loseReply(): void {
    for (const line of this.#lines) {
      line.onReply = () => {
        line.onReply = () => true;
        line.cut();
        return false;
      };
    }
  }

  async flushScripts(): Promise<void> {
    await this.#redis.script('FLUSH');
  }

  close(): void {
    for (const line of this.#lines) line.close();
    this.#redis.disconnect();
  }
}
