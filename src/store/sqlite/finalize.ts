import { type Keep, type Spec, STATES, type Terminal } from '../../job/job.js';
import { decodeSpec, keepOf } from '../../job/spec.js';
import { skipReason } from '../../job/transitions.js';
import { countMember, isHeld } from './batches.js';
import type { Value } from './file/driver.js';
import { HIDDEN, isAnyNeeded, isNeeded, keepAwaited, releaseNeeds } from './kept-records.js';
import { CountersByQueue, type QueueCounters, RAN, S, type Tables } from './tables.js';
import { unblock } from './unblock.js';
import { readNote } from './verbs/notes.js';

/** The consequences of a job's end: its record is kept or removed, its unique key freed, its dependents notified. */

export interface JobEnd {
  n: number;
  id: string;
  state: Terminal;
  spec: Spec;
  attempt: number;
  crashes: number;
  outcome: Value;
}

/** Keeps, hides or removes the record. The caller has already adjusted the count of the previous state. */
export function closeJob(tables: Tables, counters: QueueCounters, now: number, ending: JobEnd): void {
  keepAwaited(tables, counters.queue, now, [ending]);
  const keep = keepOf(ending.spec, ending.state);
  const isKept = keep.ms > 0 && keep.count > 0;
  if (isKept || isNeeded(tables, ending.n)) {
    const { n, state, attempt, crashes, outcome } = ending;
    tables
      .sql(
        `UPDATE jobs SET state = ?, attempt = ?, crashes = ?, ran = ${RAN}, at = ?, until = ?, outcome = ?,
         worker = NULL, token = NULL WHERE n = ?`,
      )
      .run(S[state], attempt, crashes, now, isKept ? now + keep.ms : HIDDEN, outcome, n);
    if (isKept) counters.add(state, 1);
  } else {
    deleteJob(tables, ending.n);
  }
  const { unique, idWindow } = ending.spec;
  if (unique && unique.scope !== 'window') freeUniqueKey(tables, counters.queue, unique.key, ending.id);
  if (idWindow) rememberIds(tables, counters.queue, [ending.id], now + idWindow);
}

/** Ids that were chosen by their producers stay taken for a while, even if the records are dropped. */
export function rememberIds(tables: Tables, queue: number, ids: readonly string[], until: number): void {
  tables
    .sql('INSERT OR REPLACE INTO ended_ids (queue, id, until) SELECT ?, value, ? FROM json_each(?)')
    .run(queue, until, JSON.stringify(ids));
}

export function freeUniqueKey(tables: Tables, queue: number, key: string, id: string): void {
  tables.sql('DELETE FROM keys WHERE queue = ? AND key = ? AND id = ?').run(queue, key, id);
}

/** A done job is not dropped for its number within this many ms of its end: somebody may be about to ask for its result. */
const YOUNG = 5_000;

/** Drops the oldest records of a state beyond `keep.count`. */
export function dropOldest(tables: Tables, counters: QueueCounters, state: Terminal, keep: Keep, now: number): void {
  const over = Math.min(counters.get(state) - keep.count, 1_000);
  if (over <= 0) return;
  const last = state === 'done' ? now + keep.ms - YOUNG : HIDDEN - 1;
  const select =
    'SELECT n FROM jobs WHERE queue = ? AND state = ? AND state > 3 AND until <= ? ORDER BY until, n LIMIT ?';
  const dropped = dropRecords(tables, counters, state, select, [counters.queue, S[state], last, over]);
  if (state === 'dead') counters.add('dropped', dropped);
}

/** Drops the records that `select` returns, or hides those that somebody needs; returns how many there were. */
export function dropRecords(
  tables: Tables,
  counters: QueueCounters,
  state: Terminal,
  select: string,
  values: Value[],
): number {
  const dropped = isAnyNeeded(tables) ? dropEach(tables, select, values) : dropAll(tables, select, values);
  counters.add(state, -dropped);
  return dropped;
}

function dropAll(tables: Tables, select: string, values: Value[]): number {
  if (hasNotes(tables)) tables.sql(`DELETE FROM notes WHERE n IN (${select})`).run(...values);
  // The job of a batch may end before its members.
  if (hasEdges(tables)) tables.sql(`DELETE FROM edges WHERE down IN (${select})`).run(...values);
  return Number(tables.sql(`DELETE FROM jobs WHERE n IN (${select})`).run(...values).changes);
}

function dropEach(tables: Tables, select: string, values: Value[]): number {
  const rows = tables.sql(select).all(...values) as { n: number }[];
  const hide = tables.sql(`UPDATE jobs SET until = ${HIDDEN} WHERE n = ?`);
  for (const { n } of rows) {
    if (isNeeded(tables, n)) hide.run(n);
    else deleteJob(tables, n);
  }
  return rows.length;
}

/** Removes the record of an ended job, even if somebody needs it, and frees its id; returns whether there was one. */
export function removeEnded(tables: Tables, counters: QueueCounters, id: string): boolean {
  tables.sql('DELETE FROM ended_ids WHERE queue = ? AND id = ?').run(counters.queue, id);
  const row = tables
    .sql('SELECT n, state, until FROM jobs WHERE queue = ? AND id = ? AND state > 3')
    .get(counters.queue, id);
  if (!row) return false;
  deleteJob(tables, row.n as number);
  tables.sql('DELETE FROM needed WHERE up = ?').run(row.n!);
  if (row.until !== HIDDEN) counters.add(STATES[row.state as number]!, -1);
  return true;
}

function deleteJob(tables: Tables, n: number): void {
  tables.sql('DELETE FROM jobs WHERE n = ?').run(n);
  if (hasNotes(tables)) tables.sql('DELETE FROM notes WHERE n = ?').run(n);
  if (hasEdges(tables)) tables.sql('DELETE FROM edges WHERE down = ?').run(n);
}

function hasEdges(tables: Tables): boolean {
  return tables.sql('SELECT 1 FROM edges LIMIT 1').get() !== undefined;
}

export function hasNotes(tables: Tables): boolean {
  return tables.sql('SELECT 1 FROM notes LIMIT 1').get() !== undefined;
}

/**
 * Notifies the dependents of ended jobs, and their own dependents if that ends them too. Returns queues with new work.
 */
export function notifyDependents(
  tables: Tables,
  own: QueueCounters,
  now: number,
  ended: { n: number; id: string; state: Terminal }[],
): number[] {
  const needy = isAnyNeeded(tables);
  if (!needy && !hasEdges(tables)) return [];
  const all = new CountersByQueue(tables, own);
  const woken = new Set<number>();
  const work = [...ended];
  for (let i = 0; i < work.length; i++) {
    const next = work[i]!;
    const rows = tables
      .sql(
        `SELECT down AS n, policy, member, queue, id, state, at, spec, grp, attempt, crashes FROM edges
         JOIN jobs ON n = down WHERE up = ? ORDER BY id`,
      )
      .all(next.n) as unknown as DependentRow[];
    tables.sql('DELETE FROM edges WHERE up = ?').run(next.n);
    for (const row of rows) {
      const runsAnyway = row.member === 1 && countMember(tables, row.n, next.state);
      if (row.state !== S.blocked) continue;
      const counters = all.of(row.queue);
      const parked = readNote(tables, row.n, 'children') !== undefined;
      if (next.state !== 'done' && row.policy === 'success') {
        work.push(skip(tables, counters, now, row, next, parked));
        if (row.grp !== null) woken.add(counters.queue);
      } else if ((runsAnyway && !parked) || !isHeld(tables, row.n)) {
        unblock(tables, counters, now, row);
        woken.add(counters.queue);
      }
    }
  }
  if (needy) releaseNeeds(tables, work);
  all.writeOthers();
  return [...woken];
}

/** A blocked job will never be able to run: it is cancelled, or dead if it has already run and waits for its children. */
function skip(
  tables: Tables,
  counters: QueueCounters,
  now: number,
  row: DependentRow,
  up: { id: string; state: Terminal },
  parked: boolean,
): { n: number; id: string; state: Terminal } {
  const { n, id, attempt, crashes } = row;
  const state = parked ? 'dead' : 'cancelled';
  const outcome = skipReason(parked, up);
  tables.sql('DELETE FROM edges WHERE down = ? AND member = 0').run(n);
  counters.add('blocked', -1);
  if (row.grp !== null) counters.groups(now).letGo(row.grp, n);
  const { size } = tables.sql('SELECT length(CAST(payload AS BLOB)) AS size FROM jobs WHERE n = ?').get(n)!;
  counters.add('bytes', -(size as number));
  const ending = { n, id, state, attempt, crashes, outcome } as const;
  closeJob(tables, counters, now, { ...ending, spec: decodeSpec(row.spec ?? '') });
  counters.event(now, state, id, outcome);
  return ending;
}

interface DependentRow {
  n: number;
  policy: 'success' | 'finished';
  member: number;
  queue: number;
  id: string;
  state: number;
  at: number;
  spec: string | null;
  grp: string | null;
  attempt: number;
  crashes: number;
}
