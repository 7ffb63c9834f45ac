import { STATES } from '../../job/job.js';
import type { Tables } from './tables.js';

/** Tables that may refer to a queue, besides its counters, which cover jobs and tasks. */
const USED_IN = ['sessions', 'keys', 'seals', 'events', 'marks', 'schedules', 'news', 'ended_ids'];
const EMPTY = ['tasks', ...STATES].map((counter) => `${counter} = 0`).join(' AND ');

/** Removes a queue that is empty and has no workers and no settings. */
export function forgetUnused(tables: Tables, queue: number, now: number): void {
  const idle = tables
    .sql(
      `SELECT 1 FROM queues WHERE n = ? AND ${EMPTY} AND paused = 0 AND pace IS NULL AND breaker IS NULL AND watched <= ?`,
    )
    .get(queue, now);
  if (!idle) return;
  for (const table of USED_IN) if (tables.sql(`SELECT 1 FROM ${table} WHERE queue = ? LIMIT 1`).get(queue)) return;
  for (const table of ['groups', 'awaited', 'history']) tables.sql(`DELETE FROM ${table} WHERE queue = ?`).run(queue);
  tables.sql('DELETE FROM queues WHERE n = ?').run(queue);
}
