import type { Engine } from '../engine/engine.js';
import type { SweepPolicy } from '../engine/maintenance.js';
import { sweepQueue } from '../engine/sweeper.js';
import type { Log } from './context.js';

/** Queues looked at together. */
const STEP = 50;
/** A queue in which nothing runs or waits for its time is swept every so many rounds, for the sake of what it keeps. */
const QUIET_ROUNDS = 30;
/** Every so many rounds, queues that others have made are looked for, and names forgotten that are no longer in the store. */
const LOOK_ROUNDS = 15;

interface WatchedQueue {
  sweptAt: number;
  /** It is not looked at before this. */
  lookAt: number;
  /** How long it was left alone the last time nothing was going on in it. */
  pause: number;
  /** Somebody has asked for it since names were last forgotten. */
  asked: boolean;
}

/** Sweeps every queue of the store for as long as the server runs, so that clients need not. */
export class QueueSweeper {
  readonly #queues = new Map<string, WatchedQueue>();
  readonly #timer: NodeJS.Timeout;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #round: Promise<void> | undefined;
  #closed = false;

  constructor(
    private readonly engine: Engine,
    private readonly policy: SweepPolicy,
    private readonly log: Log,
  ) {
    this.#timer = setInterval(() => this.#start(), policy.sweep).unref();
    this.#start();
  }

  watch(queue: string): void {
    const known = this.#queues.get(queue);
    if (known) known.asked = true;
    else this.#queues.set(queue, { sweptAt: Number.NEGATIVE_INFINITY, lookAt: 0, pause: 0, asked: true });
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
    const now = performance.now();
    if (now - this.#lookedAt > LOOK_ROUNDS * this.policy.sweep) {
      this.#refresh(new Set(await this.engine.store.queues()));
      this.#lookedAt = now;
    }
    const all = [...this.#queues.keys()].filter((queue) => this.#queues.get(queue)!.lookAt <= now);
    for (let i = 0; i < all.length && !this.#closed; i += STEP) {
      await Promise.all(all.slice(i, i + STEP).map((queue) => this.#tendOne(queue)));
    }
  }

  #refresh(stored: ReadonlySet<string>): void {
    for (const [queue, tended] of this.#queues) {
      if (!stored.has(queue) && !tended.asked) this.#queues.delete(queue);
      tended.asked = false;
    }
    for (const queue of stored) this.watch(queue);
  }

  /** A queue in which nothing goes on is looked at less and less often, but often enough to see a lease before it ends. */
  async #tendOne(queue: string): Promise<void> {
    const tended = this.#queues.get(queue);
    if (!tended) return;
    try {
      const { active, scheduled, blocked } = await this.engine.store.count(queue);
      const quiet = active + scheduled + blocked === 0;
      const now = performance.now();
      tended.pause = quiet ? Math.min(2 * tended.pause + this.policy.sweep, this.policy.lease / 2) : 0;
      tended.lookAt = now + tended.pause;
      if (quiet && now - tended.sweptAt < QUIET_ROUNDS * this.policy.sweep) return;
      tended.sweptAt = now;
      await sweepQueue(this.engine, queue, this.policy);
    } catch (error) {
      this.log.error({ err: error, queue }, 'the queue could not be swept');
    }
  }
}
