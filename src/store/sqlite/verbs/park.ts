import { writeChildren } from '../../../job/children.js';
import type { Spec } from '../../../job/job.js';
import type { Outcome } from '../../../job/transitions.js';
import { type QueueCounters, S, type Tables } from '../tables.js';
import { connect, wire } from './add.js';
import { writeNote } from './notes.js';

/**
 * Makes an active job wait for its children; if all have ended, it goes to the back of its queue. If one that must succeed has not,
 * nothing is changed and the job's end is returned.
 */
export function park(
  tables: Tables,
  counters: QueueCounters,
  now: number,
  n: number,
  { list, attempt, crashes }: Extract<Outcome, { to: 'blocked' }>,
  spec: Spec,
): { attempt: number; crashes: number; outcome: string } | undefined {
  writeNote(tables, n, 'children', writeChildren(list));
  const wires = wire(tables, list.children, true);
  if (wires.failed !== undefined) return { attempt, crashes, outcome: wires.failed };
  connect(tables, n, wires);
  if (spec.group !== undefined) counters.groups(now).hold(spec.group, n);
  const waits = wires.edges.length > 0;
  tables
    .sql(
      `UPDATE jobs SET state = ?, attempt = ?, crashes = ?, at = ?, seq = ?, ran = ?, until = NULL, outcome = NULL, worker = NULL,
       token = NULL WHERE n = ?`,
    )
    .run(
      ...[waits ? S.blocked : S.ready, attempt, crashes, waits ? now : null],
      ...[waits ? 0 : counters.nextBack(), waits ? null : now, n],
    );
  counters.add(waits ? 'blocked' : 'ready', 1);
  if (!waits && spec.group !== undefined) counters.groups(now).enter(spec.group, n);
  return undefined;
}
