import type { Tables } from '../tables.js';
import type { Value } from './driver.js';

/** Above this number of queues, reading them all is cheaper than asking for each. */
const FEW = 20;

/** Whatever happens to the jobs and tasks of a queue changes one of these, except for progress and logs, which have events. Not among them: `swept`. */
const STATE = `name, watched, paused, front, back, claims, bytes, tasks, blocked, scheduled, ready, active, done, dead, cancelled, pace, grouped,
  turn, opened, started, dropped, breaker, failed, broken, trial,
  CASE WHEN scheduled > 0 THEN (SELECT min(at) FROM jobs WHERE jobs.queue = queues.n AND state = 1) END`;

/** Which queues have changed, as far as their workers are concerned. */
export class QueueChanges {
  readonly #seen = new Map<string, string>();

  constructor(private readonly tables: Tables) {}

  /** Of the queues with listeners, those that have changed since the last call, those seen for the first time, and those whose events are recorded. */
  since(queues: ReadonlyMap<string, unknown>): string[] {
    const changed: string[] = [];
    const missing = new Set(queues.keys());
    for (const row of this.#rows(queues)) {
      const [name, watched] = row as [string, number];
      if (!missing.delete(name)) continue;
      if (this.#isNew(name, row.join()) || watched > 0) changed.push(name);
    }
    for (const name of missing) if (this.#isNew(name, '')) changed.push(name);
    if (this.#seen.size > 2 * queues.size)
      for (const name of this.#seen.keys()) if (!queues.has(name)) this.#seen.delete(name);
    return changed;
  }

  #isNew(name: string, state: string): boolean {
    if (this.#seen.get(name) === state) return false;
    this.#seen.set(name, state);
    return true;
  }

  #rows(queues: ReadonlyMap<string, unknown>): Value[][] {
    if (queues.size > FEW) return this.tables.arrays(`SELECT ${STATE} FROM queues`).all();
    const one = this.tables.arrays(`SELECT ${STATE} FROM queues WHERE name = ?`);
    return [...queues.keys()].flatMap((name) => one.all(name));
  }
}
