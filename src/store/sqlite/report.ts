import { readError } from '../../job/answer.js';
import type { Terminal } from '../../job/job.js';
import { decodeSpec, keepOf } from '../../job/spec.js';
import type { Row } from './driver.js';
import { close, prune, tell } from './ends.js';
import { S, sizeOf, type Tables, Tally } from './table.js';

export interface Reported {
  applied: boolean[];
  ended: string[];
  woken: number[];
}

const FIND = `SELECT n, id, state, attempt, crashes, spec, outcome, payload, grp FROM jobs
  WHERE queue = ? AND id = ? AND state BETWEEN ${S.scheduled} AND ${S.active}`;

/** Success without a token: see the contract. */
export function report(tables: Tables, queue: number, ids: readonly string[], now: number): Reported {
  const tally = new Tally(tables, queue);
  const told: { n: number; id: string; state: Terminal }[] = [];
  let freed = false;
  const applied = ids.map((id) => {
    const row = tables.sql(FIND).get(queue, id);
    if (!row || !mayEnd(row)) return false;
    freed ||= row.state === S.active && (row.grp !== null || tally.row.pace !== null);
    told.push(end(tables, tally, now, row));
    return true;
  });
  const woken = told.length > 0 ? tell(tables, tally, now, told) : [];
  if (freed) woken.push(queue);
  tally.write();
  return { applied, ended: told.map((job) => job.id), woken };
}

/** Active, or delivered before and unanswered since. */
function mayEnd(row: Row): boolean {
  if (row.state === S.active) return true;
  return (row.attempt as number) > 0 && !readError((row.outcome as string | null) ?? '').answered;
}

function end(tables: Tables, tally: Tally, now: number, row: Row): { n: number; id: string; state: Terminal } {
  const from = (['scheduled', 'ready', 'active'] as const)[(row.state as number) - S.scheduled]!;
  tally.add(from, -1);
  if (from !== 'active') tally.add('bytes', -sizeOf(row.payload as string));
  if (row.grp !== null && from === 'ready') tally.groups(now).leave(row.grp as string);
  if (row.grp !== null && from === 'active') tally.groups(now).release(row.grp as string, 1);
  const spec = decodeSpec((row.spec as string | null) ?? '');
  const ended = { n: row.n as number, id: row.id as string, state: 'done' as const };
  const counts = { attempt: row.attempt as number, crashes: row.crashes as number, outcome: null };
  close(tables, tally, now, { ...ended, ...counts, spec });
  tally.event(now, 'done', ended.id);
  const keep = keepOf(spec, 'done');
  if (keep.ms > 0 && keep.count > 0) prune(tables, tally, 'done', keep.count);
  return ended;
}
