import type { EventPage, EventType } from '../../store.js';
import type { QueueCounters, Tables } from '../tables.js';

/** Maximum number of events kept per queue. */
const KEPT = 10_000;

/** If recording had lapsed, a `gap` event shows that events may be missing. */
export function recordEvents(tables: Tables, counters: QueueCounters, ms: number, now: number): string {
  const { row, queue } = counters;
  const lapsed = row.watched <= now;
  row.watched = Math.max(row.watched, now + ms);
  tables.sql('UPDATE queues SET watched = ? WHERE n = ?').run(row.watched, queue);
  if (lapsed) counters.event(now, 'gap', '');
  trimEvents(tables, counters, now);
  return String(tables.sql('SELECT max(n) AS n FROM events WHERE queue = ?').get(queue)?.n ?? 0);
}

export function readEvents(tables: Tables, queue: number, after: string, limit: number): EventPage {
  const from = Number(after);
  const known = tables.sql('SELECT 1 FROM events WHERE n = ? AND queue = ?').get(from, queue);
  const rows = tables
    .arrays('SELECT n, type, id, at, info FROM events WHERE queue = ? AND n > ? ORDER BY n LIMIT ?')
    .all(queue, from, limit) as [n: number, type: EventType, id: string, at: number, info: string][];
  return {
    gap: known === undefined,
    events: rows.map(([n, type, id, at, info]) => ({ position: String(n), type, id, at, info })),
  };
}

/** Removes the oldest events beyond the maximum, and all of them an hour after the last request to record. */
export function trimEvents(tables: Tables, { row, queue }: QueueCounters, now: number): void {
  if (row.watched === 0) return;
  if (row.watched + 3_600_000 < now) {
    tables.sql('DELETE FROM events WHERE queue = ?').run(queue);
    tables.sql('UPDATE queues SET watched = 0 WHERE n = ?').run(queue);
    return;
  }
  tables
    .sql(
      `DELETE FROM events WHERE queue = ? AND n <=
         (SELECT n FROM events WHERE queue = ? ORDER BY n DESC LIMIT 1 OFFSET ${KEPT})`,
    )
    .run(queue, queue);
}
