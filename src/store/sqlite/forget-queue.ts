import { STATES } from '../../job/job.js';
import type { Tables } from './tables.js';

/** Where a queue may be named besides its counters, which tell of jobs and tasks. */
const USED_IN = ['sessions', 'keys', 'seals', 'events', 'marks', 'schedules', 'news'];
const EMPTY = ['tasks', ...STATES].map((counter) => `${counter} = 0`).join(' AND ');

/** Forgets a queue in which nothing is, on which nobody works, and for which nothing was set. */
export function forgetUnused(tables: Tables, queue: number, now: number): void {
  const idle = tables
    .sql(`SELECT 1 FROM queues WHERE n = ? AND ${EMPTY} AND paused = 0 AND pace IS NULL AND watched <= ?`)
    .get(queue, now);
  if (!idle) return;
  for (const table of USED_IN) if (tables.sql(`SELECT 1 FROM ${table} WHERE queue = ? LIMIT 1`).get(queue)) return;
  tables.sql('DELETE FROM groups WHERE queue = ?').run(queue);
  tables.sql('DELETE FROM queues WHERE n = ?').run(queue);
}
