import type { Care } from '../engine/duties.js';
import type { Engine } from '../engine/engine.js';
import { sweepQueue } from '../engine/sweeper.js';
import type { Log } from './context.js';

/** Queues looked at together. */
const STEP = 50;
/** A queue in which nothing runs or waits for its time is swept this often, for the sake of what it keeps. */
const QUIET = 30_000;
/** How often queues that others have made are looked for. */
const LOOK = 15_000;

/** Sweeps every queue of the store for as long as the server runs, so that clients need not. */
export class Caretaker {
  readonly #queues = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #round: Promise<void> | undefined;
  #closed = false;

  constructor(
    private readonly engine: Engine,
    private readonly care: Care,
    private readonly log: Log,
  ) {
    this.#timer = setInterval(() => this.#start(), care.sweep).unref();
    this.#start();
  }

  tend(queue: string): void {
    if (!this.#queues.has(queue)) this.#queues.set(queue, Number.NEGATIVE_INFINITY);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#round;
  }

  #start(): void {
    this.#round ??= this.#tendAll()
      .catch((error) => this.log.error({ err: error }, 'the queues could not be looked after'))
      .finally(() => {
        this.#round = undefined;
      });
  }

  async #tendAll(): Promise<void> {
    if (performance.now() - this.#lookedAt > LOOK) {
      for (const queue of await this.engine.store.queues()) this.tend(queue);
      this.#lookedAt = performance.now();
    }
    const all = [...this.#queues.keys()];
    for (let i = 0; i < all.length && !this.#closed; i += STEP) {
      await Promise.all(all.slice(i, i + STEP).map((queue) => this.#tendOne(queue)));
    }
  }

  async #tendOne(queue: string): Promise<void> {
    try {
      const { active, scheduled, blocked } = await this.engine.store.count(queue);
      const quiet = active + scheduled + blocked === 0;
      const now = performance.now();
      if (quiet && now - this.#queues.get(queue)! < QUIET) return;
      this.#queues.set(queue, now);
      await sweepQueue(this.engine, queue, this.care);
    } catch (error) {
      this.log.error({ err: error, queue }, 'the queue could not be swept');
    }
  }
}
