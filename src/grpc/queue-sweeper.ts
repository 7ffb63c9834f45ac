import type { Engine } from '../engine/engine.js';
import type { SweepPolicy } from '../engine/maintenance.js';
import { sweepQueue } from '../engine/sweeper.js';

/** How many queues to check at the same time. */
const STEP = 50;
/** A queue in which nothing is active, scheduled or blocked is still swept every this many rounds, for its retention limits. */
const QUIET_ROUNDS = 30;
/** Every this many rounds, looks for queues created by others, and forgets names that are no longer in the store. */
const LOOK_ROUNDS = 15;

/** For how many leases short sweeps are enough: only a whole one forgets a queue that nobody uses. */
const MOST_SHORT = 10;

interface WatchedQueue {
  sweptAt: number;
  /** The queue is not checked before this time. */
  lookAt: number;
  /** How long the queue was skipped the last time nothing was happening in it. */
  pause: number;
  /** Until then a short sweep together with other queues is enough, as long as nothing has changed. */
  quietUntil: number;
  /** The queue was requested since names were last forgotten. */
  asked: boolean;
}

/**
 * Sweeps every queue of the store while the server runs, so that clients need not. Queues in which nothing waits, runs or is due are swept together, a hundred in a call
 * on Redis: each by itself, a thousand of them took Redis 2 % of a core.
 */
export class QueueSweeper {
  readonly #queues = new Map<string, WatchedQueue>();
  readonly #timer: NodeJS.Timeout;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #round: Promise<void> | undefined;
  #closed = false;

  constructor(
    private readonly engine: Engine,
    private readonly policy: SweepPolicy,
    private readonly onError: (error: Error, what: string) => void,
  ) {
    this.#timer = setInterval(() => this.#start(), policy.sweep).unref();
    this.#start();
  }

  /** A client of this server uses the queue. */
  watch(queue: string): void {
    this.#know(queue).quietUntil = 0;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#round;
  }

  #start(): void {
    this.#round ??= this.#sweepAll()
      .catch((error: Error) => this.onError(error, 'the queues could not be swept'))
      .finally(() => {
        this.#round = undefined;
      });
  }

  async #sweepAll(): Promise<void> {
    const now = performance.now();
    if (now - this.#lookedAt > LOOK_ROUNDS * this.policy.sweep) {
      this.#refresh(new Set(await this.engine.store.queues()));
      this.#lookedAt = now;
    }
    const due = [...this.#queues].filter(([, { lookAt }]) => lookAt <= now);
    const rested = await this.#sweepTogether(due.filter(([, { quietUntil }]) => quietUntil > now));
    const all = due.flatMap(([queue]) => (rested.has(queue) ? [] : queue));
    for (let i = 0; i < all.length && !this.#closed; i += STEP) {
      await Promise.all(all.slice(i, i + STEP).map((queue) => this.#sweepOne(queue)));
    }
  }

  #know(queue: string): WatchedQueue {
    const known = this.#queues.get(queue) ?? { sweptAt: -Infinity, lookAt: 0, pause: 0, quietUntil: 0, asked: true };
    known.asked = true;
    this.#queues.set(queue, known);
    return known;
  }

  /**
   * Returns those of the queues that need no other sweep now. Workers sweep their queues, too: most are left out.
   */
  async #sweepTogether(together: readonly [string, WatchedQueue][]): Promise<Set<string>> {
    const { sweepQuiet } = this.engine.store;
    if (!sweepQuiet || together.length === 0) return new Set();
    const { lease } = this.policy;
    const queues = together.map(([queue]) => ({ queue, lease, every: Math.floor(lease / 4) }));
    const swept = await sweepQuiet(queues).catch(() => []);
    const quiet = together.filter((_one, i) => swept[i]);
    for (const [, tended] of quiet) tended.lookAt = performance.now() + this.#rest();
    return new Set(quiet.map(([queue]) => queue));
  }

  /** Half a lease, with the time until the round that follows. */
  #rest(): number {
    return Math.max(this.policy.sweep, (this.policy.lease - this.policy.sweep) / 2);
  }

  /** A gap of a lease between two sweeps looks as if nobody could send heartbeats: dead sessions would be granted another lease. */
  #quietPause(): number {
    return Math.min(QUIET_ROUNDS * this.policy.sweep, this.policy.lease / 2);
  }

  #refresh(stored: ReadonlySet<string>): void {
    for (const [queue, tended] of this.#queues) {
      if (!stored.has(queue) && !tended.asked) this.#queues.delete(queue);
      tended.asked = false;
    }
    for (const queue of stored) this.#know(queue);
  }

  /** Checks a queue in which nothing happens less and less often, but often enough to notice a lease before it ends. */
  async #sweepOne(queue: string): Promise<void> {
    const tended = this.#queues.get(queue);
    if (!tended) return;
    try {
      const { active, scheduled, blocked } = await this.engine.store.count(queue);
      const quiet = active + scheduled + blocked === 0;
      const now = performance.now();
      tended.pause = quiet ? Math.min(2 * tended.pause + this.policy.sweep, this.policy.lease / 2) : 0;
      tended.lookAt = now + tended.pause;
      if (quiet && now - tended.sweptAt < this.#quietPause()) return;
      tended.sweptAt = now;
      const quietFor = await sweepQueue(this.engine, queue, this.policy);
      tended.quietUntil = now + Math.min(quietFor, MOST_SHORT * this.policy.lease);
      if (quietFor > this.#rest()) tended.lookAt = now + this.#rest();
    } catch (error) {
      this.onError(error as Error, `the queue '${queue}' could not be swept`);
    }
  }
}
