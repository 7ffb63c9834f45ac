import {
  type Activity,
  addActivity,
  HISTORY_RANGES,
  type HistoryRange,
  type Interval,
  intervalAt,
  RANGE_NAMES,
  readActivity,
  writeActivity,
} from '../../history.js';
import type { Tables } from '../tables.js';

export function recordHistory(tables: Tables, queue: number, activity: Activity, now: number): void {
  const { blocked, scheduled, ready, active } = tables.row(queue);
  const depth = blocked + scheduled + ready + active;
  for (const range of RANGE_NAMES) {
    const interval = intervalAt(range, now);
    const stored = tables
      .sql('SELECT activity FROM history WHERE queue = ? AND range = ? AND interval = ?')
      .get(queue, range, interval);
    const sum = stored ? readActivity(stored.activity as string) : undefined;
    if (sum) addActivity(sum, activity);
    tables
      .sql('INSERT OR REPLACE INTO history (queue, range, interval, activity) VALUES (?, ?, ?, ?)')
      .run(queue, range, interval, writeActivity(sum ?? activity, depth));
    if (!stored) dropOld(tables, queue, range, now);
  }
}

export function readHistory(tables: Tables, queue: number, range: HistoryRange, now: number): Interval[] {
  const { step } = HISTORY_RANGES[range];
  return tables
    .sql('SELECT interval, activity FROM history WHERE queue = ? AND range = ? AND interval > ? ORDER BY interval')
    .all(queue, range, oldestBefore(range, now))
    .map((row) => ({ at: (row.interval as number) * step, ...readActivity(row.activity as string) }));
}

/** Removes what is older than the ranges; for queues in which nothing happens any more. */
export function dropOldHistory(tables: Tables, queue: number, now: number): void {
  for (const range of RANGE_NAMES) dropOld(tables, queue, range, now);
}

function dropOld(tables: Tables, queue: number, range: HistoryRange, now: number): void {
  tables
    .sql('DELETE FROM history WHERE queue = ? AND range = ? AND interval <= ?')
    .run(queue, range, oldestBefore(range, now));
}

function oldestBefore(range: HistoryRange, now: number): number {
  return intervalAt(range, now) - HISTORY_RANGES[range].steps;
}
