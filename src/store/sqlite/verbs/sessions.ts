import type { NewSession, WorkerSession } from '../../store.js';
import type { Tables } from '../tables.js';
import { leasesOf } from './reads.js';

export function join(tables: Tables, queue: number, worker: string, session: NewSession, now: number): void {
  tables
    .sql('INSERT OR REPLACE INTO sessions (queue, worker, deadline, info, raw) VALUES (?, ?, ?, ?, ?)')
    .run(queue, worker, now + session.lease, session.info, session.raw ? 1 : 0);
  // From here on a gap between sweeps can be recognised.
  tables.sql('UPDATE queues SET swept = ? WHERE n = ? AND swept IS NULL').run(now, queue);
}

/** False where a session is gone or was declared dead. */
export function heartbeat(tables: Tables, sessions: readonly WorkerSession[], now: number): boolean[] {
  const update = tables.sql('UPDATE sessions SET deadline = ? WHERE queue = ? AND worker = ? AND deadline >= 0');
  return sessions.map(({ queue, worker, lease }) => {
    const number = tables.find(queue);
    return number !== undefined && update.run(now + lease, number, worker).changes === 1;
  });
}

export function leave(tables: Tables, queue: number, worker: string, expiredBy: number): void {
  if (leasesOf(tables, queue, worker).length > 0) return;
  tables.sql('DELETE FROM sessions WHERE queue = ? AND worker = ? AND deadline <= ?').run(queue, worker, expiredBy);
}
