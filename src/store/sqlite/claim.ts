import type { Body, Entry, Job } from '../../job/job.js';
import { DEFAULT_SPEC, decodeSpec } from '../../job/spec.js';
import type { Claim } from '../store.js';
import type { Value } from './driver.js';
import { unlock } from './ends.js';
import { leaseToken, makeToken, sizeOf, type Tables, Tally } from './table.js';

interface ClaimRequest {
  queue: number;
  name: string;
  worker: string;
  lease: number;
  n: number;
  nonce: string;
  now: number;
}

const LOWEST = Number.MIN_SAFE_INTEGER;
const HIGHEST = Number.MAX_SAFE_INTEGER;

export function claim(tables: Tables, request: ClaimRequest): Claim {
  const { queue, worker, now } = request;
  const nothing = { entries: [], more: false };
  const beat = tables.sql(
    'UPDATE sessions SET deadline = max(deadline, ?) WHERE queue = ? AND worker = ? AND deadline >= 0',
  );
  if (beat.run(now + request.lease, queue, worker).changes !== 1) return { status: 'lost', ...nothing };
  const tally = new Tally(tables, queue);
  if (tally.row.paused) return { status: 'paused', ...nothing };
  promote(tables, tally, now, 1_000);
  const token = `${tally.row.claims}.${request.nonce}`;
  const entries = tally.get('ready') > 0 ? take(tables, tally, request, token) : [];
  tally.add('claims', entries.length);
  tally.add('ready', -entries.length);
  tally.add('active', entries.length);
  tally.write();
  const next = tables.sql('SELECT min(at) AS at FROM jobs WHERE queue = ? AND state = 1').get(queue);
  return { status: 'ok', entries, more: tally.get('ready') > 0, nextAt: (next?.at as number | null) ?? undefined };
}

/** Due jobs join the back of their line; returns how many. */
export function promote(tables: Tables, tally: Tally, now: number, limit: number): number {
  if (tally.get('scheduled') === 0) return 0;
  const due = tables
    .sql('SELECT n FROM jobs WHERE queue = ? AND state = 1 AND at <= ? ORDER BY at, id LIMIT ?')
    .all(tally.queue, now, limit);
  const update = tables.sql('UPDATE jobs SET state = 2, at = NULL, seq = ? WHERE n = ?');
  for (const row of due) {
    update.run(tally.nextBack(), row.n!);
    tally.move('scheduled', 'ready');
  }
  return due.length;
}

/** Higher priorities, then raw tasks and default jobs turn by turn, then lower ones. */
function take(tables: Tables, tally: Tally, request: ClaimRequest, token: string): Entry[] {
  const jobs = (low: number, high: number, limit: number) => takeJobs(tables, tally, request, token, low, high, limit);
  if (tally.get('tasks') === 0) return jobs(LOWEST, HIGHEST, request.n);
  const first = jobs(1, HIGHEST, request.n);
  const want = request.n - first.length;
  const refs = countDefault(tables, tally.queue, want);
  const half = Math.floor(want / 2) + (want % 2 === 1 && tally.row.claims % 2 === 1 ? 1 : 0);
  const share = Math.min(tally.get('tasks'), Math.max(half, want - refs));
  const raw = takeTasks(tables, tally, request, token, share);
  const middle = jobs(0, 0, want - raw.length);
  const rest = jobs(LOWEST, -1, want - raw.length - middle.length);
  return [...first, ...interleave(raw, middle), ...rest];
}

function interleave(first: Entry[], second: Entry[]): Entry[] {
  const mixed: Entry[] = [];
  for (let i = 0; i < Math.max(first.length, second.length); i++) {
    if (i < first.length) mixed.push(first[i]!);
    if (i < second.length) mixed.push(second[i]!);
  }
  return mixed;
}

function countDefault(tables: Tables, queue: number, limit: number): number {
  const row = tables
    .sql('SELECT count(*) AS n FROM (SELECT 1 FROM jobs WHERE queue = ? AND state = 2 AND priority = 0 LIMIT ?)')
    .get(queue, limit);
  return row!.n as number;
}

/** Six numbers travel as one text: a value fetched costs more than a value parsed. */
const TAKE_JOBS = `UPDATE jobs
  SET state = 3, attempt = attempt + 1, at = ?, worker = ?, token = ?, outcome = NULL,
      until = CASE WHEN reservation > 0 THEN ? + reservation END
  WHERE n IN (SELECT n FROM jobs WHERE queue = ? AND state = 2 AND priority BETWEEN ? AND ?
              ORDER BY priority DESC, seq LIMIT ?)
  RETURNING n || ' ' || seq || ' ' || priority || ' ' || attempt || ' ' || crashes || ' ' || created, id, spec, payload`;

function takeJobs(
  tables: Tables,
  tally: Tally,
  request: ClaimRequest,
  token: string,
  low: number,
  high: number,
  limit: number,
): Entry[] {
  if (limit <= 0) return [];
  const { queue, worker, now } = request;
  const rows = tables.arrays(TAKE_JOBS).all(now, worker, token, now, queue, low, high, limit);
  const taken = rows.map((row) => readJob(row, request, token));
  taken.sort((a, b) => b.job.priority - a.job.priority || a.seq - b.seq);
  let bytes = 0;
  for (const { job } of taken) {
    bytes += sizeOf(job.payload);
    if (job.spec.unique?.scope === 'waiting') unlock(tables, queue, job.spec.unique.key, job.id);
  }
  tally.add('bytes', -bytes);
  return taken.map(({ job }) => ({ lease: { worker, token: job.token!, id: job.id }, job }));
}

function readJob(row: Value[], { name, worker, now }: ClaimRequest, token: string): { seq: number; job: Job } {
  const [n, seq, priority, attempt, crashes, created] = (row[0] as string).split(' ');
  const job: Job = {
    queue: name,
    id: row[1] as string,
    state: 'active',
    payload: row[3] as Body,
    priority: Number(priority),
    attempt: Number(attempt),
    crashes: Number(crashes),
    createdAt: Number(created),
    startedAt: now,
    worker,
    token: makeToken(attempt!, n!, token, row[1] as string),
    spec: row[2] === null ? DEFAULT_SPEC : decodeSpec(row[2] as string),
  };
  return { seq: Number(seq), job };
}

const TAKE_TASKS = `UPDATE tasks SET worker = ?, token = ?
  WHERE n IN (SELECT n FROM tasks WHERE queue = ? AND worker IS NULL ORDER BY seq LIMIT ?)
  RETURNING n, seq, body, token`;

function takeTasks(
  tables: Tables,
  tally: Tally,
  { queue, worker }: ClaimRequest,
  token: string,
  limit: number,
): Entry[] {
  if (limit <= 0) return [];
  const rows = tables.sql(TAKE_TASKS).all(worker, token, queue, limit);
  rows.sort((a, b) => (a.seq as number) - (b.seq as number));
  tally.add('tasks', -rows.length);
  return rows.map((row) => {
    const task = row.body as Uint8Array;
    tally.add('bytes', -task.length);
    return { lease: { worker, token: leaseToken(row) }, task };
  });
}
