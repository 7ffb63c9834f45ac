import { decodeSpec, isRelated } from '../../../job/spec.js';
import { moveLine } from '../../manual-changes.js';
import type { MoveOutcome } from '../../store.js';
import type { Row } from '../file/driver.js';
import { HIDDEN, isNeededByJobs } from '../kept-records.js';
import { QueueCounters, S, sizeOf, type Tables } from '../tables.js';
import { appendNote, readNote } from './notes.js';

export interface Moved {
  outcomes: MoveOutcome[];
  /** Ids that somebody waited for here. */
  gone: string[];
}

/** Moves jobs to another queue; see the contract. */
export function moveJobs(
  tables: Tables,
  queue: number,
  ids: readonly string[],
  to: string,
  now: number,
  by?: string,
): Moved {
  const source = new QueueCounters(tables, queue);
  const target = new QueueCounters(tables, tables.ensure(to));
  const gone: string[] = [];
  const line = moveLine(source.row.name, now, by);
  const outcomes = ids.map((id) => {
    const row = tables
      .sql(
        `SELECT n, id, state, at, spec, payload, grp FROM jobs WHERE queue = ? AND id = ? AND (until IS NULL OR until < ${HIDDEN})`,
      )
      .get(queue, id);
    const refusal = refusalOf(tables, target.queue, row, now);
    if (refusal || !row) return refusal ?? 'unknown';
    moveOne(tables, source, target, row, now);
    if (line !== undefined) appendNote(tables, row.n as number, 'attempts', line);
    if (tables.sql('DELETE FROM awaited WHERE queue = ? AND id = ?').run(queue, id).changes > 0) gone.push(id);
    return 'moved';
  });
  source.write();
  target.write();
  return { outcomes, gone };
}

function refusalOf(tables: Tables, target: number, row: Row | undefined, now: number): MoveOutcome | undefined {
  if (!row) return 'unknown';
  const { state, n } = row as { state: number; n: number };
  if (state === S.blocked) return 'linked';
  if (state !== S.scheduled && state !== S.ready && state !== S.dead) return 'started';
  const spec = decodeSpec((row.spec as string | null) ?? '');
  const hasDependents = tables.sql('SELECT 1 FROM edges WHERE up = ? LIMIT 1').get(n) !== undefined;
  if (spec.needs || isRelated(spec) || hasDependents || isNeededByJobs(tables, n) || hasOwn(tables, n)) return 'linked';
  return isTaken(tables, target, row, now) ? 'taken' : undefined;
}

/** It has children, or is the job of a batch. */
function hasOwn(tables: Tables, n: number): boolean {
  return readNote(tables, n, 'children') !== undefined || readNote(tables, n, 'batch') !== undefined;
}

function isTaken(tables: Tables, target: number, row: Row, now: number): boolean {
  const id = row.id as string;
  if (tables.sql('SELECT 1 FROM jobs WHERE queue = ? AND id = ?').get(target, id)) return true;
  if (tables.sql('SELECT 1 FROM ended_ids WHERE queue = ? AND id = ? AND until > ?').get(target, id, now)) return true;
  const { unique } = decodeSpec((row.spec as string | null) ?? '');
  if (!unique) return false;
  const holder = tables.sql('SELECT until FROM keys WHERE queue = ? AND key = ?').get(target, unique.key);
  return holder !== undefined && (holder.until === 0 || (holder.until as number) > now);
}

/** The row stays the same, and with it the history of its attempts, its log and its progress. */
function moveOne(tables: Tables, source: QueueCounters, target: QueueCounters, row: Row, now: number): void {
  const { n, id, grp: group } = row as { n: number; id: string; grp: string | null };
  const from = row.state === S.scheduled ? 'scheduled' : row.state === S.ready ? 'ready' : 'dead';
  const later = from === 'scheduled' && (row.at as number) > now;
  const size = sizeOf(row.payload as string);
  source.add(from, -1);
  if (from !== 'dead') source.add('bytes', -size);
  if (group !== null && from === 'ready') source.groups(now).leave(group);
  if (group !== null && from !== 'dead') source.groups(now).letGo(group, n);
  if (from === 'dead') tables.sql('UPDATE jobs SET attempt = 0, crashes = 0, outcome = NULL WHERE n = ?').run(n);
  tables
    .sql('UPDATE jobs SET queue = ?, state = ?, at = ?, ran = ?, until = NULL, seq = ? WHERE n = ?')
    .run(
      ...[target.queue, later ? S.scheduled : S.ready, later ? row.at! : null, later ? null : now],
      ...[later ? 0 : target.nextBack(), n],
    );
  target.add(later ? 'scheduled' : 'ready', 1);
  target.add('bytes', size);
  if (group !== null && !later) target.groups(now).enter(group);
  moveUniqueKey(tables, source.queue, target.queue, row);
  source.event(now, 'moved', id, target.row.name);
  target.event(now, 'added', id);
}

function moveUniqueKey(tables: Tables, source: number, target: number, row: Row): void {
  const { unique } = decodeSpec((row.spec as string | null) ?? '');
  if (!unique) return;
  tables.sql('DELETE FROM keys WHERE queue = ? AND key = ?').run(target, unique.key);
  tables
    .sql('UPDATE keys SET queue = ? WHERE queue = ? AND key = ? AND id = ?')
    .run(target, source, unique.key, row.id!);
}
