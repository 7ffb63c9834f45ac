import type { Engine } from './engine.js';
import { sweepQueue } from './sweeper.js';

/** How a queue is swept while this process has a worker on it. */
export interface SweepPolicy {
  lease: number;
  sweep: number;
  maxCrashes: number;
}

/** How often the store is asked whether something is ready in a quiet queue without a signal, in milliseconds. */
const LOOK = 1_000;

/** How many times the store may ask for a look between two of the clock: a server whose table of remembered keys is full forgets one for each that is added. */
const MOST_ASKED = 10;

interface WatchedQueue {
  /** One for each worker on the queue. */
  policies: SweepPolicy[];
  timer?: NodeJS.Timeout;
  /** A sweep is under way. */
  busy: boolean;
  /** No sweep is needed before a signal, or before `dueAt` on the monotonic clock. */
  quiet: boolean;
  dueAt: number;
  /** Until then a sweep need not look for anything that becomes due, on the same clock. */
  nothingDueUntil: number;
  /** Called when something is ready without a signal. */
  wakes: Set<() => void>;
  /** Counts signals: one that comes during a sweep may be newer than its result. */
  signals: number;
  unsubscribe: () => void;
}

/**
 * Sweeps each queue this process works on, at the interval of its workers. Where nothing waits, runs or is due, the store says how long it needs no
 * sweep; until then, or until a signal of the queue, it is only one of many that one call asks about.
 */
export class Maintenance {
  readonly #queues = new Map<string, WatchedQueue>();
  #look: NodeJS.Timeout | undefined;
  #lookMs = Infinity;
  #looking = false;
  #lookingSoon = false;
  /** The store asked for a look while one was under way. */
  #lookAgain = false;
  #asked = 0;

  constructor(private readonly engine: Engine) {}

  /** Starts maintaining a queue; returns a function that stops it. `wake` is called when something is ready that no signal has told of. */
  watch(queue: string, policy: SweepPolicy, wake: () => void = () => {}): () => void {
    const watched = this.#queues.get(queue) ?? this.#open(queue);
    watched.policies.push(policy);
    watched.wakes.add(wake);
    this.#wake(queue, watched);
    this.#lookEvery(Math.min(LOOK, policy.sweep));
    return () => {
      watched.wakes.delete(wake);
      this.#unwatch(queue, watched, policy);
    };
  }

  /** Sweeps every queue now. */
  async run(): Promise<void> {
    for (const [queue, { policies }] of [...this.#queues]) await sweepQueue(this.engine, queue, combined(policies));
  }

  close(): void {
    for (const [queue, watched] of this.#queues) this.#close(queue, watched);
    clearInterval(this.#look);
  }

  #open(queue: string): WatchedQueue {
    const watched: WatchedQueue = {
      policies: [],
      busy: false,
      quiet: false,
      dueAt: 0,
      nothingDueUntil: 0,
      wakes: new Set(),
      signals: 0,
      unsubscribe: () => {},
    };
    this.#queues.set(queue, watched);
    watched.unsubscribe = this.engine.store.subscribe(queue, () => this.#signalled(queue, watched));
    return watched;
  }

  #close(queue: string, watched: WatchedQueue): void {
    clearTimeout(watched.timer);
    watched.unsubscribe();
    this.#queues.delete(queue);
  }

  #unwatch(queue: string, watched: WatchedQueue, policy: SweepPolicy): void {
    const at = watched.policies.indexOf(policy);
    if (at < 0 || this.#queues.get(queue) !== watched) return;
    watched.policies.splice(at, 1);
    if (watched.policies.length > 0) this.#wake(queue, watched);
    else this.#close(queue, watched);
    if (this.#queues.size > 0) return;
    clearInterval(this.#look);
    this.#lookMs = Infinity;
  }

  #signalled(queue: string, watched: WatchedQueue): void {
    watched.signals += 1;
    if (watched.quiet) this.#wake(queue, watched);
  }

  /** Sweeps at the usual interval again. */
  #wake(queue: string, watched: WatchedQueue): void {
    watched.quiet = false;
    if (!watched.busy) this.#sweepIn(queue, watched, combined(watched.policies).sweep);
  }

  #sweepIn(queue: string, watched: WatchedQueue, ms: number): void {
    clearTimeout(watched.timer);
    watched.timer = setTimeout(() => void this.#sweep(queue, watched), ms).unref();
  }

  async #sweep(queue: string, watched: WatchedQueue): Promise<void> {
    if (watched.busy) return;
    const { signals } = watched;
    let quietFor = 0;
    watched.busy = true;
    try {
      quietFor = await sweepQueue(this.engine, queue, combined(watched.policies));
    } catch (error) {
      this.engine.onError(error as Error, `sweep of queue '${queue}'`);
    }
    watched.busy = false;
    if (this.#queues.get(queue) !== watched) return;
    const { sweep } = combined(watched.policies);
    watched.quiet = quietFor > sweep && signals === watched.signals;
    if (watched.quiet) this.#rest(watched, performance.now() + quietFor);
    else this.#sweepIn(queue, watched, sweep);
  }

  /**
   * A signal may be lost: then the work of a dead worker is noticed half a lease later, and no more. After a whole lease without a sweep
   * the store would take it that nobody could send heartbeats, and grant dead sessions another lease.
   */
  #rest(watched: WatchedQueue, until: number): void {
    watched.nothingDueUntil = until;
    watched.dueAt = Math.min(until, performance.now() + restOf(watched));
  }

  /** Looks as often as the shortest interval of the sweeps so far. */
  #lookEvery(ms: number): void {
    if (ms >= this.#lookMs) return;
    this.#lookMs = ms;
    clearInterval(this.#look);
    this.#look = setInterval(() => {
      this.#asked = 0;
      this.#sweepDue();
      void this.#lookForReady();
    }, ms).unref();
  }

  /** Sweeps that are due at about the same time are sent together: on Redis as one call, on SQLite in one transaction. Those that are due soon come along. */
  #sweepDue(): void {
    const now = performance.now();
    const { sweepQuiet } = this.engine.store;
    const together: [string, WatchedQueue][] = [];
    let due = false;
    for (const [queue, watched] of this.#queues) {
      if (!watched.quiet || watched.busy) continue;
      const isDue = watched.dueAt <= now;
      const isShort = sweepQuiet !== undefined && now < watched.nothingDueUntil;
      if (isShort && watched.dueAt - now <= restOf(watched) / 2) together.push([queue, watched]);
      else if (isDue) void this.#sweep(queue, watched);
      due ||= isDue;
    }
    if (due && together.length > 0) void this.#sweepTogether(together);
  }

  /** Sweeps queues one by one only if there is something to do in them, or if the store did not say. */
  async #sweepTogether(together: readonly [string, WatchedQueue][]): Promise<void> {
    const before = together.map(([, watched]) => watched.signals);
    for (const [, watched] of together) watched.busy = true;
    const queues = together.map(([queue, { policies }]) => {
      const { lease, sweep } = combined(policies);
      return { queue, lease, every: Math.max(0, Math.floor(lease / 4) - sweep) };
    });
    const swept = await this.engine.store.sweepQuiet!(queues).catch(() => []);
    for (const [i, [queue, watched]] of together.entries()) {
      watched.busy = false;
      if (this.#queues.get(queue) !== watched) continue;
      if (swept[i] && watched.quiet && before[i] === watched.signals) this.#rest(watched, watched.nothingDueUntil);
      else void this.#sweep(queue, watched);
    }
  }

  /** Signals that arrived together with the message go first: a queue that they have woken needs no look. */
  readonly #lookSoon = (): void => {
    if (this.#lookingSoon || this.#asked >= MOST_ASKED) return;
    this.#lookingSoon = true;
    this.#asked += 1;
    setImmediate(() => {
      this.#lookingSoon = false;
      if (this.#looking) this.#lookAgain = true;
      else void this.#lookForReady();
    });
  };

  /** Another program has pushed tasks, or the connection for signals is dead and does not know it yet. */
  async #lookForReady(): Promise<void> {
    const quiet = [...this.#queues].flatMap(([queue, watched]) => (watched.quiet && !watched.busy ? [queue] : []));
    if (!this.engine.store.withReady || this.#looking || quiet.length === 0) return;
    this.#looking = true;
    try {
      for (const queue of await this.engine.store.withReady(quiet, this.#lookSoon)) {
        const watched = this.#queues.get(queue);
        if (!watched?.quiet) continue;
        this.#signalled(queue, watched);
        this.#sweepIn(queue, watched, 0); // tells listeners elsewhere
        for (const wake of watched.wakes) wake();
      }
    } catch (error) {
      this.engine.onError(error as Error, 'looking at quiet queues');
    }
    this.#looking = false;
    if (this.#lookAgain) this.#lookSoon();
    this.#lookAgain = false;
  }
}

/** How long a quiet queue is not swept, in milliseconds. */
function restOf({ policies }: WatchedQueue): number {
  const { sweep, lease } = combined(policies);
  return Math.max(lease / 2, sweep);
}

/**
 * Combines the policies of all workers on a queue: the shortest lease and sweep interval, and the largest crash limit, so that no
 * job becomes dead too early.
 */
function combined(policies: readonly SweepPolicy[]): SweepPolicy {
  return {
    lease: Math.min(...policies.map(({ lease }) => lease)),
    sweep: Math.min(...policies.map(({ sweep }) => sweep)),
    maxCrashes: Math.max(...policies.map(({ maxCrashes }) => maxCrashes)),
  };
}
