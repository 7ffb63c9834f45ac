import type { Engine } from '../../engine/engine.js';
import { type Interval, intervalAt } from '../../store/history.js';
import type { Counts, QueueLimits } from '../../store/store.js';
import type { QueueRow } from '../api.js';
import { within } from './within.js';

/** Queues that are looked at together. */
const TOGETHER = 50;
/** A queue that was looked at less than this many milliseconds ago is left out of a look at all of them. */
const FRESH = 400;
const JUST_NOW = 50;
/** Where there are more queues than this, their names are kept for as long, and all are looked at less often. */
export const MANY = 200;
const PASS_EVERY = 3_000;
/** A look at all queues takes at most one part in this many of the time. */
const PASS_SHARE = 10;
/** Milliseconds in which an answer has been written. */
const ANSWERED = 20;
const MINUTE = 60_000;
const MINUTES = 60;

/** What the board knows of a queue. */
export interface Glance {
  queue: string;
  at: number;
  counts: Counts;
  paused: boolean;
  /** While the breaker is open: when it lets the next job through. */
  brokenUntil?: number;
  limits: QueueLimits;
  /** Sessions of workers; only looked up where jobs are ready. */
  workers: number;
  /** How long the next job has been ready. */
  oldest?: number;
  /** An earlier look at it, to see whether it grows: at least ten seconds old once it is known for that long. */
  earlier?: { at: number; oldest: number };
  /** Jobs that became dead in the last ten minutes; only looked up where some are. */
  newlyDead: number;
}

/**
 * Looks at the queues while somebody watches: at those of a page when they are asked for, and at all of them from time to time, in
 * steps, so that ten thousand queues neither delay an answer nor keep the store busy.
 */
export class QueueBoard {
  readonly #glances = new Map<string, Glance>();
  #names: { until: number; found: Promise<string[]> } | undefined;
  #pass: Promise<void> | undefined;
  #passAt = 0;

  constructor(private readonly engine: Engine) {}

  names(): Promise<string[]> {
    const now = performance.now();
    if (this.#names && now < this.#names.until) return this.#names.found;
    const found = this.engine.store.queues();
    found.then(
      ({ length }) => {
        this.#names = length > MANY ? { until: performance.now() + FRESH, found } : undefined;
      },
      () => {},
    );
    return found;
  }

  /**
   * What is known of all queues; begins another look at them if the last one is old, and waits for it a little. Whoever has no
   * patience at all gets an answer before it begins.
   */
  async glances(patience: number): Promise<Glance[]> {
    const names = await this.names();
    if (names.length <= MANY || performance.now() > this.#passAt) this.#pass ??= this.#start(names, patience);
    if (patience > 0) await within(patience, this.#pass);
    return names.flatMap((name) => this.#glances.get(name) ?? []);
  }

  /** It may fail after everybody who waited has gone, when the store is closed, say. */
  #start(names: readonly string[], patience: number): Promise<void> {
    const pass = this.#begin(names, patience);
    pass.catch(() => {});
    return pass;
  }

  async #begin(names: readonly string[], patience: number): Promise<void> {
    if (patience === 0) await new Promise((resolve) => setTimeout(resolve, ANSWERED).unref());
    await this.#lookAtAll(names);
  }

  /** Rows for these queues, as they are now. */
  async rows(names: readonly string[]): Promise<QueueRow[]> {
    const rows: QueueRow[] = [];
    for (let i = 0; i < names.length; i += TOGETHER)
      rows.push(...(await Promise.all(names.slice(i, i + TOGETHER).map((name) => this.row(name)))));
    return rows;
  }

  async row(queue: string): Promise<QueueRow> {
    const { store } = this.engine;
    const [glance, workers, hour] = await Promise.all([
      this.#look(queue, 0),
      store.workers(queue),
      store.history?.read(queue, 'hour'),
    ]);
    const { counts, paused, brokenUntil, limits, oldest } = glance;
    const now = store.now();
    const rate = (what: 'added' | 'done' | 'failed') => (hour ? ratePerSecond(hour, what, now) : 0);
    return {
      name: queue,
      counts,
      ...(oldest === undefined ? {} : { oldest }),
      rateIn: rate('added'),
      rateOut: rate('done'),
      rateFailed: rate('failed'),
      workers: workers.length,
      paused,
      ...(brokenUntil === undefined ? {} : { brokenUntil }),
      limits,
      ...(hour ? { doneByMinute: byMinute(hour, now) } : {}),
    };
  }

  async #lookAtAll(names: readonly string[]): Promise<void> {
    const began = performance.now();
    try {
      for (let i = 0; i < names.length; i += TOGETHER) {
        await Promise.all(
          names.slice(i, i + TOGETHER).map((name) => this.#look(name, names.length > MANY ? FRESH : JUST_NOW)),
        );
        await new Promise((resolve) => setImmediate(resolve));
      }
      const known = new Set(names);
      for (const name of this.#glances.keys()) if (!known.has(name)) this.#glances.delete(name);
    } finally {
      const took = performance.now() - began;
      this.#passAt = performance.now() + Math.max(names.length > MANY ? PASS_EVERY : 0, PASS_SHARE * took);
      this.#pass = undefined;
    }
  }

  /** What is known is good enough if it is younger than `fresh` milliseconds. */
  async #look(queue: string, fresh: number): Promise<Glance> {
    const known = this.#glances.get(queue);
    if (known && performance.now() - known.at < fresh) return known;
    const { store } = this.engine;
    const [counts, { paused, limits, breakerState }] = await Promise.all([store.count(queue), store.settings(queue)]);
    const [oldest, workers] =
      counts.ready > 0 ? await Promise.all([this.#oldest(queue), store.workers(queue)]) : [undefined, []];
    const newlyDead = counts.dead > 0 ? await this.#newlyDead(queue) : 0;
    const glance: Glance = {
      ...{ queue, at: performance.now(), counts, paused, limits, workers: workers.length, newlyDead },
      ...(oldest === undefined ? {} : { oldest }),
      ...(breakerState?.until === undefined ? {} : { brokenUntil: breakerState.until }),
      ...earlierLook(known),
    };
    this.#glances.set(queue, glance);
    return glance;
  }

  /** Undefined if the first entry is a raw task, whose age nobody knows. */
  async #oldest(queue: string): Promise<number | undefined> {
    const { store } = this.engine;
    const [first] = (await store.list(queue, { state: 'ready', limit: 1 })).jobs;
    return first && Math.max(0, store.now() - (first.runAt ?? first.createdAt));
  }

  async #newlyDead(queue: string): Promise<number> {
    const { store } = this.engine;
    const since = store.now() - 10 * MINUTE;
    const hour = (await store.history?.read(queue, 'hour')) ?? [];
    return hour.filter(({ at }) => at >= since).reduce((sum, { dead }) => sum + dead, 0);
  }
}

/** A look is compared with one from the last minute, so that a pause between two jobs does not count as growth. */
function earlierLook(known: Glance | undefined): Pick<Glance, 'earlier'> {
  if (known?.oldest === undefined) return {};
  const { earlier } = known;
  return { earlier: earlier && known.at - earlier.at < MINUTE ? earlier : { at: known.at, oldest: known.oldest } };
}

/** Per second over the last minute: all of the current interval, and as much of the one before as belongs to that minute. */
function ratePerSecond(hour: readonly Interval[], what: 'added' | 'done' | 'failed', now: number): number {
  const current = intervalAt('hour', now) * MINUTE;
  const share = 1 - (now - current) / MINUTE;
  const sum = hour.reduce((total, one) => {
    if (one.at === current) return total + one[what];
    return one.at === current - MINUTE ? total + one[what] * share : total;
  }, 0);
  return Math.round((sum / 60) * 1_000) / 1_000;
}

function byMinute(hour: readonly Interval[], now: number): number[] {
  const last = intervalAt('hour', now);
  const counts = new Array<number>(MINUTES).fill(0);
  for (const { at, done } of hour) {
    const place = MINUTES - 1 - (last - at / MINUTE);
    if (place >= 0 && place < MINUTES) counts[place] = done;
  }
  return counts;
}
