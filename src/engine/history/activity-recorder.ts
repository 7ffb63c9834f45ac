import { type Activity, addActivity, bucketOf, type Distribution, noActivity } from '../../store/history.js';
import type { HistoryStore } from '../../store/store.js';

/** How often activity is written to the store, in milliseconds. */
const INTERVAL = 5_000;
/** Queues whose activity is kept apart between two writes; the others count only in the sum of all queues. */
const MOST_QUEUES = 1_000;
/** Writes under way at once. */
const TOGETHER = 50;
/** How long closing waits for the last write. */
const LAST_WRITE = 200;

/** The history of all queues together. */
export const ALL_QUEUES = '';

/**
 * Adds up what this process does with each queue, and writes it to the history of the queue every few seconds: one call per queue, and
 * none for queues in which nothing happened. What cannot be written is dropped: charts have a gap where the store was out of reach.
 */
export class ActivityRecorder {
  #activities = new Map<string, Activity>();
  #timer: NodeJS.Timeout | undefined;
  #isFailing = false;

  constructor(private readonly history: HistoryStore) {}

  added(queue: string, count: number): void {
    if (count > 0) this.#of(queue).added += count;
  }

  /** Where to count how long jobs of a queue have waited, with `count`. */
  waitsOf(queue: string): Distribution {
    return this.#of(queue).waits;
  }

  ended(queue: string, what: 'done' | 'failed' | 'dead', count: number): void {
    this.#of(queue)[what] += count;
  }

  ran(queue: string, ms: number): void {
    count(this.#of(queue).runs, ms);
  }

  async write(): Promise<void> {
    const activities = this.#activities;
    this.#activities = new Map();
    if (activities.size === 0) return;
    const all = noActivity();
    for (const activity of activities.values()) addActivity(all, activity);
    activities.delete(ALL_QUEUES);
    const named = [...activities];
    this.#isFailing = false;
    await this.#record(ALL_QUEUES, all);
    for (let i = 0; i < named.length && !this.#isFailing; i += TOGETHER)
      await Promise.all(named.slice(i, i + TOGETHER).map(([queue, activity]) => this.#record(queue, activity)));
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#isFailing || this.#activities.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LAST_WRITE);
    });
    await Promise.race([this.write(), late]);
    clearTimeout(timer);
  }

  #of(queue: string): Activity {
    const known = this.#activities.get(queue);
    if (known) return known;
    if (this.#activities.size >= MOST_QUEUES && queue !== ALL_QUEUES) return this.#of(ALL_QUEUES);
    const made = noActivity();
    this.#activities.set(queue, made);
    this.#timer ??= this.#start();
    return made;
  }

  #start(): NodeJS.Timeout {
    return setTimeout(() => {
      void this.write().finally(() => {
        this.#timer = this.#activities.size > 0 ? this.#start() : undefined;
      });
    }, INTERVAL).unref();
  }

  async #record(queue: string, activity: Activity): Promise<void> {
    try {
      await this.history.record(queue, activity);
    } catch {
      this.#isFailing = true;
    }
  }
}

export function count(distribution: Distribution, ms: number): void {
  const bucket = bucketOf(ms);
  distribution[bucket] = (distribution[bucket] ?? 0) + 1;
}
