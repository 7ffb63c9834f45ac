import { writeAction } from '../../../job/attempt.js';
import { restartChildren } from '../../../job/children.js';
import { type Lease, STATES, type Terminal } from '../../../job/job.js';
import { decodeSpec, keepOf } from '../../../job/spec.js';
import { withTimes } from '../../../job/timed-lines.js';
import type { ProgressUpdate, QueueLimits, QueueSettings } from '../../store.js';
import { closeBreaker, setBreaker } from '../breaker.js';
import { closeJob, dropOldest, notifyDependents, removeEnded } from '../finalize.js';
import { HIDDEN, releaseNeeds } from '../kept-records.js';
import { leaseToken, QueueCounters, sizeOf, type Tables } from '../tables.js';
import { appendNote, readNote, writeNote, writeProgress } from './notes.js';
import { leasedJob, leasedTask } from './settle.js';

export interface Cancelled {
  applied: boolean[];
  /** Tokens of running jobs that must be stopped. */
  tokens: string[];
  ended: string[];
  woken: number[];
}

export function cancel(tables: Tables, queue: number, ids: readonly string[], now: number, by?: string): Cancelled {
  const counters = new QueueCounters(tables, queue);
  const result: Cancelled = { applied: [], tokens: [], ended: [], woken: [] };
  const endings: { n: number; id: string; state: 'cancelled' }[] = [];
  let freed = false;
  for (const id of ids) {
    const row = tables
      .sql(
        'SELECT n, id, state, attempt, crashes, token, spec, payload, grp FROM jobs WHERE queue = ? AND id = ? AND state < 4',
      )
      .get(queue, id);
    result.applied.push(row !== undefined);
    if (!row) continue;
    const from = (['blocked', 'scheduled', 'ready', 'active'] as const)[row.state as number]!;
    counters.add(from, -1);
    if (from === 'active') result.tokens.push(leaseToken(row));
    else counters.add('bytes', -sizeOf(row.payload as string));
    if (row.grp !== null) {
      const groups = counters.groups(now);
      if (from === 'ready') groups.leave(row.grp as string);
      if (from === 'active') groups.release(row.grp as string, 1);
      else if (groups.letGo(row.grp as string, row.n as number)) freed = true;
    }
    if (from === 'active' && (row.grp !== null || counters.row.pace !== null)) freed = true;
    if (from === 'blocked') tables.sql('DELETE FROM edges WHERE down = ? AND member = 0').run(row.n!);
    if (by !== undefined) appendNote(tables, row.n as number, 'attempts', writeAction('cancelled', now, by));
    const spec = decodeSpec((row.spec as string | null) ?? '');
    const ending = { n: row.n as number, id, state: 'cancelled' as const };
    const counts = { attempt: row.attempt as number, crashes: row.crashes as number, outcome: 'cancelled' };
    closeJob(tables, counters, now, { ...ending, ...counts, spec });
    counters.event(now, 'cancelled', id, 'cancelled');
    const keep = keepOf(spec, 'cancelled');
    if (keep.ms > 0 && keep.count > 0) dropOldest(tables, counters, 'cancelled', keep, now);
    endings.push(ending);
    result.ended.push(id);
  }
  if (endings.length > 0) result.woken = notifyDependents(tables, counters, now, endings);
  if (freed) result.woken.push(queue);
  counters.write();
  return result;
}

export function rerun(
  tables: Tables,
  queue: number,
  ids: readonly string[],
  from: readonly Terminal[],
  now: number,
  by?: string,
): boolean[] {
  const counters = new QueueCounters(tables, queue);
  const applied = ids.map((id) => {
    const row = tables
      .sql(`SELECT n, state, payload, grp FROM jobs WHERE queue = ? AND id = ? AND state > 3 AND until < ${HIDDEN}`)
      .get(queue, id);
    const state = row && (STATES[row.state as number] as Terminal);
    if (!state || !from.includes(state)) return false;
    tables
      .sql(
        'UPDATE jobs SET state = 2, attempt = 0, crashes = 0, at = NULL, until = NULL, outcome = NULL, ran = ?, seq = ? WHERE n = ?',
      )
      .run(now, counters.nextBack(), row.n!);
    counters.move(state, 'ready');
    counters.event(now, 'revived', id);
    if (by !== undefined) appendNote(tables, row.n as number, 'attempts', writeAction('retried', now, by));
    const children = readNote(tables, row.n as number, 'children');
    if (children !== undefined) writeNote(tables, row.n as number, 'children', restartChildren(children));
    if (row.grp !== null) counters.groups(now).enter(row.grp as string);
    counters.add('bytes', sizeOf(row.payload as string));
    return true;
  });
  counters.write();
  return applied;
}

function setLimits(tables: Tables, queue: number, pace: QueueLimits, now: number): void {
  const text = Object.keys(pace).length === 0 ? null : JSON.stringify(pace);
  tables.sql('UPDATE queues SET pace = ? WHERE n = ?').run(text, queue);
  const counters = new QueueCounters(tables, queue);
  counters.groups(now).reconsider();
  counters.write();
}

/** Changes the given settings. */
export function configure(tables: Tables, queue: number, settings: Partial<QueueSettings>, now: number): void {
  const { paused, limits, breaker } = settings;
  if (paused !== undefined) tables.sql('UPDATE queues SET paused = ? WHERE n = ?').run(paused ? 1 : 0, queue);
  if (paused === false) closeBreaker(tables, new QueueCounters(tables, queue), now);
  if (limits !== undefined) setLimits(tables, queue, limits, now);
  if (breaker !== undefined) setBreaker(tables, queue, breaker);
}

/** Removes the records of ended jobs. */
export function remove(tables: Tables, queue: number, ids: readonly string[]): boolean[] {
  const counters = new QueueCounters(tables, queue);
  const applied = ids.map((id) => removeEnded(tables, counters, id));
  counters.write();
  return applied;
}

export function recordProgress(
  tables: Tables,
  queue: number,
  lease: Lease,
  { progress, log }: ProgressUpdate,
  now: number,
): boolean {
  const row = lease.id === undefined ? leasedTask(tables, queue, lease) : leasedJob(tables, queue, lease);
  if (!row) return false;
  if (lease.id === undefined) return true;
  if (progress !== undefined) new QueueCounters(tables, queue).event(now, 'progress', lease.id, progress);
  const n = row.n as number;
  if (progress !== undefined) writeProgress(tables, n, progress, now);
  if (log !== undefined) appendNote(tables, n, 'log', withTimes(log, now));
  return true;
}

const COUNTERS =
  'tasks = 0, bytes = 0, grouped = 0, blocked = 0, scheduled = 0, ready = 0, active = 0, done = 0, dead = 0, cancelled = 0, dropped = 0';

/** Removes everything of a queue except its sessions. For dependents in other queues, its jobs count as cancelled. */
export function obliterate(tables: Tables, queue: number, now: number): number[] {
  const mine = '(SELECT n FROM jobs WHERE queue = ?)';
  const ups = tables.sql(`SELECT DISTINCT up AS n, id FROM edges JOIN jobs ON n = up WHERE queue = ?`).all(queue);
  const downs = tables.sql(`SELECT DISTINCT down AS n FROM needed WHERE down IN ${mine}`).all(queue) as { n: number }[];
  tables.sql(`DELETE FROM edges WHERE down IN ${mine}`).run(queue);
  tables.sql(`DELETE FROM needed WHERE up IN ${mine}`).run(queue);
  tables.sql(`DELETE FROM notes WHERE n IN ${mine}`).run(queue);
  tables.sql('DELETE FROM jobs WHERE queue = ?').run(queue);
  tables.sql('DELETE FROM tasks WHERE queue = ?').run(queue);
  tables.sql('DELETE FROM keys WHERE queue = ?').run(queue);
  tables.sql('DELETE FROM groups WHERE queue = ?').run(queue);
  tables.sql('DELETE FROM events WHERE queue = ?').run(queue);
  tables.sql('DELETE FROM seals WHERE queue = ?').run(queue);
  tables.sql('DELETE FROM ended_ids WHERE queue = ?').run(queue);
  tables.sql('DELETE FROM awaited WHERE queue = ?').run(queue);
  tables.sql('DELETE FROM history WHERE queue = ?').run(queue);
  tables.sql(`UPDATE queues SET paused = 0, failed = 0, broken = 0, trial = NULL, ${COUNTERS} WHERE n = ?`).run(queue);
  const counters = new QueueCounters(tables, queue);
  const endings = ups.map((row) => ({ n: row.n as number, id: row.id as string, state: 'cancelled' as const }));
  const woken = notifyDependents(tables, counters, now, endings);
  releaseNeeds(tables, downs);
  counters.write();
  return woken;
}
