import type { Terminal } from '../../../job/job.js';
import { readError } from '../../../job/reported-error.js';
import { decodeSpec, keepOf } from '../../../job/spec.js';
import { BreakerCount } from '../breaker.js';
import type { Row } from '../file/driver.js';
import { closeJob, dropOldest, notifyDependents } from '../finalize.js';
import { leaseToken, QueueCounters, S, sizeOf, type Tables } from '../tables.js';

export interface Reported {
  applied: boolean[];
  ended: string[];
  woken: number[];
}

const FIND = `SELECT n, id, state, attempt, crashes, token, spec, outcome, payload, grp FROM jobs
  WHERE queue = ? AND id = ? AND state BETWEEN ${S.scheduled} AND ${S.active}`;

/** Success without a token: see the contract. */
export function reportSuccess(tables: Tables, queue: number, ids: readonly string[], now: number): Reported {
  const counters = new QueueCounters(tables, queue);
  const endings: { n: number; id: string; state: Terminal }[] = [];
  const breaker = new BreakerCount(tables, counters, now);
  let freed = false;
  const applied = ids.map((id) => {
    const row = tables.sql(FIND).get(queue, id);
    if (!row || !mayEnd(row)) return false;
    freed ||= row.grp !== null || (row.state === S.active && counters.row.pace !== null);
    breaker.succeeded(leaseToken(row));
    endings.push(end(tables, counters, now, row));
    return true;
  });
  breaker.write();
  const woken = endings.length > 0 ? notifyDependents(tables, counters, now, endings) : [];
  if (freed || breaker.closed) woken.push(queue);
  counters.write();
  return { applied, ended: endings.map((job) => job.id), woken };
}

/** Whether the job is active, or was delivered and has had no report since. */
function mayEnd(row: Row): boolean {
  if (row.state === S.active) return true;
  return (row.attempt as number) > 0 && !readError((row.outcome as string | null) ?? '').answered;
}

function end(
  tables: Tables,
  counters: QueueCounters,
  now: number,
  row: Row,
): { n: number; id: string; state: Terminal } {
  const from = (['scheduled', 'ready', 'active'] as const)[(row.state as number) - S.scheduled]!;
  counters.add(from, -1);
  if (from !== 'active') counters.add('bytes', -sizeOf(row.payload as string));
  if (row.grp !== null && from === 'ready') counters.groups(now).leave(row.grp as string);
  if (row.grp !== null && from === 'active') counters.groups(now).release(row.grp as string, 1);
  else if (row.grp !== null) counters.groups(now).letGo(row.grp as string, row.n as number);
  const spec = decodeSpec((row.spec as string | null) ?? '');
  const ended = { n: row.n as number, id: row.id as string, state: 'done' as const };
  const counts = { attempt: row.attempt as number, crashes: row.crashes as number, outcome: null };
  closeJob(tables, counters, now, { ...ended, ...counts, spec });
  counters.event(now, 'done', ended.id);
  const keep = keepOf(spec, 'done');
  if (keep.ms > 0 && keep.count > 0) dropOldest(tables, counters, 'done', keep, now);
  return ended;
}
