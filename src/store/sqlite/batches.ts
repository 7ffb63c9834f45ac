import { CroreError } from '../../errors.js';
import { countEnds, newBatch, readBatch, type StoredBatch, writeBatch } from '../../job/batch.js';
import { type BatchPolicy, type JobRef, type NewJob, STATES, type State, type Terminal } from '../../job/job.js';
import type { MemberPage } from '../store.js';
import { type QueueCounters, S, type Tables } from './tables.js';
import { unblock } from './unblock.js';
import { readNote, writeNote } from './verbs/notes.js';

/** The job of a batch is blocked until the batch is closed and all members have ended; its counts are a note of it. */

export function openBatch(tables: Tables, n: number, policy: BatchPolicy): void {
  save(tables, n, newBatch(policy));
}

/** Before anything is written, checks that the batches of these jobs are open. */
export function checkBatches(tables: Tables, jobs: readonly NewJob[]): void {
  const checked = new Set<string>();
  for (const { spec } of jobs) {
    if (!spec.batch) continue;
    const key = `${spec.batch.queue}\0${spec.batch.id}`;
    if (checked.has(key)) continue;
    checked.add(key);
    const { queue, id } = spec.batch;
    const row = find(tables, spec.batch);
    if (!row) throw new CroreError('NOT_FOUND', `there is no batch '${id}' in queue '${queue}'`);
    if (!row.batch.open) throw new CroreError('BATCH_CLOSED', `batch '${id}' of queue '${queue}' is closed`);
  }
}

/** Makes a new job a member of its batch, which is open. */
export function joinBatch(tables: Tables, member: number, ref: JobRef): void {
  const { n, batch } = find(tables, ref)!;
  tables.sql("INSERT INTO edges (up, down, policy, member) VALUES (?, ?, 'finished', 1)").run(member, n);
  save(tables, n, { ...batch, total: batch.total + 1 });
}

/** A member has ended. Returns whether the job of its batch runs now, although others have not ended. */
export function countMember(tables: Tables, n: number, state: Terminal): boolean {
  const batch = readBatch(readNote(tables, n, 'batch')!);
  const runs = countEnds(batch, state);
  save(tables, n, batch);
  return runs;
}

/** Whether a blocked job still waits for another one, for members of its batch, or for the batch to be closed. */
export function isHeld(tables: Tables, n: number): boolean {
  const parked = readNote(tables, n, 'children') !== undefined;
  const which = parked ? 'AND member = 0' : '';
  if (tables.sql(`SELECT 1 FROM edges WHERE down = ? ${which} LIMIT 1`).get(n)) return true;
  const batch = parked ? undefined : readNote(tables, n, 'batch');
  return batch !== undefined && readBatch(batch).open;
}

/** No more members; see the contract. */
export function closeBatch(tables: Tables, counters: QueueCounters, id: string, now: number): State | undefined {
  const found = find(tables, { queue: counters.row.name, id });
  if (!found) return undefined;
  const { n, state, at, grp, batch } = found;
  if (!batch.open) return STATES[state]!;
  save(tables, n, { ...batch, open: false });
  if (state !== S.blocked || isHeld(tables, n)) return STATES[state]!;
  return unblock(tables, counters, now, { n, at, grp });
}

export function openMembers(tables: Tables, queue: number, id: string, limit: number, cursor: string): MemberPage {
  const rows = tables
    .sql(
      `SELECT edges.up AS n, queues.name AS queue, member.id AS id FROM jobs AS owner
       JOIN edges ON edges.down = owner.n AND edges.member = 1 JOIN jobs AS member ON member.n = edges.up
       JOIN queues ON queues.n = member.queue
       WHERE owner.queue = ? AND owner.id = ? AND edges.up > ? ORDER BY edges.up LIMIT ?`,
    )
    .all(queue, id, Number(cursor) || 0, limit);
  const members = rows.map((row) => ({ queue: row.queue as string, id: row.id as string }));
  return { members, ...(rows.length < limit ? {} : { cursor: String(rows.at(-1)!.n) }) };
}

interface BatchRow {
  n: number;
  state: number;
  at: number;
  grp: string | null;
  batch: StoredBatch;
}

/** The job of a batch; it is open only while that job waits. */
function find(tables: Tables, { queue, id }: JobRef): BatchRow | undefined {
  const number = tables.find(queue);
  if (number === undefined) return undefined;
  const row = tables
    .sql('SELECT jobs.n, state, at, grp, batch FROM jobs JOIN notes ON notes.n = jobs.n WHERE queue = ? AND id = ?')
    .get(number, id);
  if (!row || row.batch === null) return undefined;
  const batch = readBatch(row.batch as string);
  const open = batch.open && row.state === S.blocked;
  return { ...(row as unknown as BatchRow), batch: { ...batch, open } };
}

function save(tables: Tables, n: number, batch: StoredBatch): void {
  writeNote(tables, n, 'batch', writeBatch(batch));
}
