import type { Body, Entry, Job } from '../../../job/job.js';
import { DEFAULT_SPEC, decodeSpec } from '../../../job/spec.js';
import type { Claim } from '../../store.js';
import { letThrough } from '../breaker.js';
import type { Value } from '../file/driver.js';
import { freeUniqueKey } from '../finalize.js';
import { type Groups, limitsOf, type Share, windowOf } from '../groups.js';
import { makeToken, QueueCounters, sizeOf, type Tables } from '../tables.js';
import { takeTasks, whichRows } from '../tasks/plain-tasks.js';

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
  const counters = new QueueCounters(tables, queue);
  if (counters.row.paused) return { status: 'paused', ...nothing };
  const { broken } = counters.row;
  if (broken > now) return { status: 'paused', ...nothing, nextAt: broken };
  const one = broken > 0;
  promote(tables, counters, now, 1_000);
  const token = `${counters.row.claims}.${request.nonce}`;
  const leave = roomWithinLimits(counters, one ? 1 : request.n, now);
  const groups = counters.groups(now);
  const grouping = counters.get('turn') > 0;
  if (grouping) groups.reopen();
  const entries =
    (grouping || counters.get('ready') > 0) && leave.n > 0
      ? take(tables, counters, { ...request, n: leave.n }, token, groups)
      : [];
  recordStarts(counters, entries, now);
  countStarts(tables, queue, leave, entries.length);
  counters.add('claims', entries.length);
  counters.add('ready', -entries.length);
  counters.add('active', entries.length);
  const turns = grouping && groups.anyTurn();
  counters.write();
  if (one && entries.length > 0) {
    return { status: 'ok', entries, more: false, nextAt: letThrough(tables, counters, token, now) };
  }
  const next = tables.sql('SELECT min(at) AS at FROM jobs WHERE queue = ? AND state = 1').get(queue);
  const waits = turns || counters.get('ready') > counters.get('grouped');
  // At a limit of the queue nothing more can be claimed for now, whatever waits.
  const spent = entries.length === leave.n && (leave.n < request.n || leave.opens !== undefined);
  const times = [(next?.at as number | null) ?? undefined, waits && spent ? leave.opens : undefined];
  if (grouping) times.push(groups.nextOpening());
  const known = times.filter((time) => time !== undefined);
  return { status: 'ok', entries, more: waits && !spent, nextAt: known.length > 0 ? Math.min(...known) : undefined };
}

/** One call for each run of jobs with the same attempt, which is usually all of them. */
function recordStarts(counters: QueueCounters, entries: readonly Entry[], now: number): void {
  if (counters.row.watched <= now) return;
  const jobs = entries.flatMap(({ job }) => job ?? []);
  for (let from = 0, to = 0; from < jobs.length; from = to) {
    const { attempt } = jobs[from]!;
    while (jobs[to]?.attempt === attempt) to += 1;
    const ids = jobs.slice(from, to).map(({ id }) => id);
    counters.events(now, 'started', ids, attempt);
  }
}

interface Leave {
  n: number;
  /** When the rate allows more starts, if the rate is what blocks them. */
  opens?: number;
  window?: { opened: number; started: number };
}

/** How much of `n` the limits of the queue allow. */
export function roomWithinLimits(counters: QueueCounters, n: number, now: number): Leave {
  if (counters.row.pace === null) return { n };
  const { concurrency, rate } = limitsOf(counters.row);
  let most = concurrency === undefined ? n : Math.min(n, concurrency - counters.get('active'));
  if (!rate) return { n: Math.max(0, most) };
  const [opened, started] = windowOf(counters.row, rate, now);
  const left = rate.count - started;
  const opens = left <= most ? opened + rate.per : undefined;
  most = Math.min(most, left);
  return { n: Math.max(0, most), opens, window: { opened, started } };
}

/** Counts this many starts in the rate window of the queue. */
export function countStarts(tables: Tables, queue: number, { window }: Leave, count: number): void {
  if (!window || count === 0) return;
  const update = tables.sql('UPDATE queues SET opened = ?, started = ? WHERE n = ?');
  update.run(window.opened, window.started + count, queue);
}

/** Moves due jobs to the back of their waiting list; returns how many. */
export function promote(tables: Tables, counters: QueueCounters, now: number, limit: number): number {
  if (counters.get('scheduled') === 0) return 0;
  const due = tables
    .sql('SELECT n, grp FROM jobs WHERE queue = ? AND state = 1 AND at <= ? ORDER BY at, id LIMIT ?')
    .all(counters.queue, now, limit);
  const update = tables.sql('UPDATE jobs SET state = 2, ran = at, at = NULL, seq = ? WHERE n = ?');
  for (const row of due) {
    const [n, group] = [row.n as number, row.grp as string | null];
    const isHeld = group !== null && counters.groups(now).isHeld(group, n);
    update.run(isHeld ? counters.nextFront() : counters.nextBack(), n);
    counters.move('scheduled', 'ready');
    if (group !== null) counters.groups(now).enter(group, n);
  }
  return due.length;
}

/** Takes higher priorities, then groups in turn, then raw tasks and default jobs alternately, then lower priorities. */
function take(tables: Tables, counters: QueueCounters, request: ClaimRequest, token: string, groups: Groups): Entry[] {
  const jobs = (low: number, high: number, limit: number) =>
    takeJobs(tables, counters, request, token, low, high, limit);
  if (counters.get('tasks') === 0 && counters.get('turn') === 0) return jobs(LOWEST, HIGHEST, request.n);
  const first = jobs(1, HIGHEST, request.n);
  const refs = countDefault(tables, counters.queue, request.n);
  // If the number is odd, the kinds alternate in getting the larger half. With three kinds there are two such
  // alternations.
  const half = (whole: number, turns: number) =>
    Math.floor(whole / 2) + (whole % 2 === 1 ? Math.floor(counters.row.claims / turns) % 2 : 0);
  const turns = counters.get('grouped') > 0 ? 2 : 1;
  const wanted = request.n - first.length;
  const most = Math.max(half(wanted, 1), wanted - counters.get('tasks') - refs);
  const grouped = groups.take(most, (shares) => takeOfGroups(tables, counters, request, token, shares));
  const want = wanted - grouped.length;
  const share = Math.min(counters.get('tasks'), Math.max(half(want, turns), want - refs));
  const raw = takeTasks(tables, counters, request, token, share);
  const middle = jobs(0, 0, want - raw.length);
  const rest = jobs(LOWEST, -1, want - raw.length - middle.length);
  return [...first, ...grouped, ...interleave(raw, middle), ...rest];
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
    .sql(
      'SELECT count(*) AS n FROM (SELECT 1 FROM jobs WHERE queue = ? AND state = 2 AND grp IS NULL AND priority = 0 LIMIT ?)',
    )
    .get(queue, limit);
  return row!.n as number;
}

/** The numbers are returned as one text: fetching a value costs more than parsing one. */
const FIELDS = (attempt: string) =>
  `n || ' ' || priority || ' ' || ${attempt} || ' ' || crashes || ' ' || created || ' ' || coalesce(ran, ''), id, spec, payload`;
const LEASE = (which: string) => `UPDATE jobs
  SET state = 3, attempt = attempt + 1, at = ?, worker = ?, token = ?, outcome = NULL,
      until = CASE WHEN reservation > 0 THEN ? + reservation END
  WHERE ${which}`;
const FIRST = (fields: string, which: string) =>
  `SELECT ${fields} FROM jobs WHERE queue = ? AND state = 2 AND ${which} ORDER BY priority DESC, seq LIMIT ?`;
const FIRST_JOBS = FIRST(FIELDS('(attempt + 1)'), 'grp IS NULL AND priority BETWEEN ? AND ?');
const FIRST_OF_GROUP = FIRST(FIELDS('(attempt + 1)'), 'grp = ?');
const HELD = `SELECT ${FIELDS('(attempt + 1)')} FROM jobs WHERE n = ?`;

/** Reads and then leases: one statement that does both, with RETURNING, takes a third more time. */
function takeJobs(
  tables: Tables,
  counters: QueueCounters,
  request: ClaimRequest,
  token: string,
  low: number,
  high: number,
  limit: number,
): Entry[] {
  if (limit <= 0) return [];
  const { queue } = request;
  const rows = tables.arrays(FIRST_JOBS).all(queue, low, high, limit);
  if (rows.length === 0) return [];
  return lease(tables, counters, request, token, rows);
}

/** Takes the first jobs of these groups, group by group. */
function takeOfGroups(
  tables: Tables,
  counters: QueueCounters,
  request: ClaimRequest,
  token: string,
  shares: ReadonlyMap<string, Share>,
): Entry[] {
  const first = tables.arrays(FIRST_OF_GROUP);
  const rows: Value[][] = [];
  for (const [group, { count, held }] of shares)
    rows.push(...(held === null ? first.all(request.queue, group, count) : tables.arrays(HELD).all(held)));
  return lease(tables, counters, request, token, rows);
}

/** Leases the rows, which were read before, converts them to entries and applies the side effects of the claim. */
function lease(
  tables: Tables,
  counters: QueueCounters,
  request: ClaimRequest,
  token: string,
  rows: readonly Value[][],
): Entry[] {
  const { queue, worker, now } = request;
  const taken = rows.map((row) => readJob(row, request, token));
  const { where, values } = whichRows(taken.map(({ n }) => n));
  tables.sql(LEASE(where)).run(now, worker, token, now, ...values);
  let bytes = 0;
  for (const { job } of taken) {
    bytes += sizeOf(job.payload);
    if (job.spec.unique?.scope === 'waiting') freeUniqueKey(tables, queue, job.spec.unique.key, job.id);
  }
  counters.add('bytes', -bytes);
  return taken.map(({ job }) => ({ lease: { worker, token: job.token!, id: job.id }, job }));
}

interface Taken {
  n: number;
  job: Job;
}

function readJob(row: Value[], { name, worker, now }: ClaimRequest, token: string): Taken {
  const [n, priority, attempt, crashes, created, ready] = (row[0] as string).split(' ');
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
  if (ready !== '') job.runAt = Number(ready);
  return { n: Number(n), job };
}
