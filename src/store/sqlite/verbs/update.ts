import { STATES, type State } from '../../../job/job.js';
import { changeLine } from '../../manual-changes.js';
import type { JobChanges } from '../../store.js';
import type { Row } from '../file/driver.js';
import { QueueCounters, S, sizeOf, type Tables } from '../tables.js';
import { appendNote } from './notes.js';

/** Changes a waiting job; see the contract. */
export function updateJob(
  tables: Tables,
  queue: number,
  id: string,
  changes: JobChanges,
  now: number,
): State | undefined {
  const row = tables
    .sql('SELECT n, state, priority, at, payload, grp FROM jobs WHERE queue = ? AND id = ?')
    .get(queue, id);
  if (!row) return undefined;
  const state = STATES[row.state as number]!;
  if ((row.state as number) > S.ready) return state;
  const counters = new QueueCounters(tables, queue);
  if (changes.payload !== undefined) {
    tables.sql('UPDATE jobs SET payload = ? WHERE n = ?').run(changes.payload, row.n!);
    counters.add('bytes', sizeOf(changes.payload) - sizeOf(row.payload as string));
  }
  place(tables, counters, row, state, changes, now);
  const line = changeLine(changes, now);
  if (line !== undefined) appendNote(tables, row.n as number, 'attempts', line);
  counters.event(now, 'changed', id);
  counters.write();
  return state;
}

/** Puts the job where its new time and priority belong, behind what is there. */
function place(
  tables: Tables,
  counters: QueueCounters,
  row: Row,
  state: State,
  { at, delay, priority = row.priority as number }: JobChanges,
  now: number,
): void {
  const due = at ?? (delay === undefined ? undefined : now + delay);
  if (due === undefined && priority === row.priority) return;
  if (state === 'blocked') {
    tables.sql('UPDATE jobs SET priority = ?, at = ? WHERE n = ?').run(priority, due ?? row.at!, row.n!);
    return;
  }
  const time = due ?? (state === 'scheduled' ? (row.at as number) : now);
  const later = time > now;
  if (state === 'ready' && row.grp !== null) counters.groups(now).leave(row.grp as string);
  const isHeld = row.grp !== null && counters.groups(now).isHeld(row.grp as string, row.n as number);
  tables
    .sql('UPDATE jobs SET state = ?, priority = ?, at = ?, ran = ?, seq = ? WHERE n = ?')
    .run(
      ...[later ? S.scheduled : S.ready, priority, later ? time : null, later ? null : now],
      ...[later ? 0 : isHeld ? counters.nextFront() : counters.nextBack(), row.n!],
    );
  counters.move(state, later ? 'scheduled' : 'ready');
  if (!later && row.grp !== null) counters.groups(now).enter(row.grp as string, row.n as number);
}
