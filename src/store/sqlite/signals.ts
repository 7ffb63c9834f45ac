import type { Signal } from '../store.js';
import type { CommitWatcher } from './file/commit-watcher.js';
import { QueueChanges } from './file/queue-changes.js';
import type { Tables } from './tables.js';

type Listener = (signal: Signal) => void;

/** Minimum interval between notifications of external commits that may affect running work, in milliseconds. */
const RESET_PAUSE = 50;

/** Signals within this process, and what commits of other processes may mean. */
export class Signals {
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #changes: QueueChanges;
  /** Queues that have changed since they were told to check everything again. */
  #unchecked = new Set<string>();
  readonly #watcher: CommitWatcher | undefined;
  #resetAt = 0;
  #resetTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly tables: Tables,
    /** Creates the watcher for commits of other processes; absent for an in-memory database. */
    watcher: ((notify: () => void) => CommitWatcher) | undefined,
    /** Called after a commit of another process. */
    private readonly onForeignCommit: () => void,
  ) {
    this.#changes = new QueueChanges(tables);
    this.#watcher = watcher?.(() => this.#foreignCommit());
  }

  subscribe(queue: string, listener: Listener): () => void {
    const set = this.#listeners.get(queue) ?? new Set();
    this.#listeners.set(queue, set);
    set.add(listener);
    this.#watcher?.start();
    return () => {
      set.delete(listener);
      if (set.size === 0) this.#listeners.delete(queue);
      if (this.#listeners.size === 0) this.#watcher?.stop();
    };
  }

  emit(queue: string, signal: Signal): void {
    for (const listener of this.#listeners.get(queue) ?? []) listener(signal);
  }

  /** Jobs of a queue have ended, and jobs of the `woken` queues may start because of it. */
  ended(queue: string, ids: readonly string[], woken: readonly number[]): void {
    if (this.#listeners.has(queue)) for (const id of ids) this.emit(queue, { type: 'finished', id });
    for (const number of new Set(woken)) {
      const name = this.tables.row(number)?.name;
      if (name !== undefined) this.emit(name, { type: 'work' });
    }
  }

  /** Queues whose events were written in the last commit. */
  newEvents(queues: Set<string>): void {
    if (queues.size === 0) return;
    for (const queue of queues) this.emit(queue, { type: 'events' });
    queues.clear();
  }

  close(): void {
    this.#listeners.clear();
    this.#watcher?.stop();
    clearTimeout(this.#resetTimer);
  }

  /**
   * Signals possible work at once, and possible cancellations or ends of watched jobs at a limited rate: to the queues that have changed, because
   * most commits of an idle process are heartbeats.
   */
  #foreignCommit(): void {
    this.onForeignCommit();
    for (const queue of this.#changes.since(this.#listeners)) {
      this.#unchecked.add(queue);
      this.emit(queue, { type: 'work' });
    }
    if (this.#resetTimer || this.#unchecked.size === 0) return;
    const wait = Math.max(0, this.#resetAt + RESET_PAUSE - performance.now());
    this.#resetTimer = setTimeout(() => {
      this.#resetTimer = undefined;
      this.#resetAt = performance.now();
      const queues = this.#unchecked;
      this.#unchecked = new Set();
      for (const queue of queues) this.emit(queue, { type: 'reset' });
    }, wait).unref();
  }
}
