import type { State } from '../../job/job.js';
import { type QueueCounters, S, type Tables } from './tables.js';

/** A blocked job waits for nothing any more: it is ready, or scheduled if its time has not come. */
export function unblock(
  tables: Tables,
  counters: QueueCounters,
  now: number,
  { n, at, grp }: { n: number; at: number; grp: string | null },
): State {
  const later = at > now;
  counters.move('blocked', later ? 'scheduled' : 'ready');
  const isHeld = grp !== null && counters.groups(now).isHeld(grp, n);
  const seq = () => (isHeld ? counters.nextFront() : counters.nextBack());
  tables
    .sql('UPDATE jobs SET state = ?, seq = ?, ran = ? WHERE n = ?')
    .run(later ? S.scheduled : S.ready, later ? 0 : seq(), later ? null : now, n);
  if (grp !== null && !later) counters.groups(now).enter(grp, n);
  return later ? 'scheduled' : 'ready';
}
