import { batchCounts } from '../../../job/batch.js';
import { readChildren } from '../../../job/children.js';
import { type Job, type Lease, STATES, type State } from '../../../job/job.js';
import { readLog, readProgressSteps } from '../../../job/timed-lines.js';
import type { Counts, Dependents, JobPage, ListOptions, WorkerInfo } from '../../store.js';
import type { Row, Value } from '../file/driver.js';
import { HIDDEN } from '../kept-records.js';
import { JOB_COLUMNS, leaseToken, S, type Tables, toJob } from '../tables.js';

export function get(tables: Tables, queue: number, name: string, ids: readonly string[]): (Job | undefined)[] {
  const select = tables.sql(`SELECT ${JOB_COLUMNS} FROM jobs WHERE queue = ? AND id = ?`);
  return ids.map((id) => {
    const row = select.get(queue, id);
    return row && withNotes(tables, toJob(name, row), row);
  });
}

function withNotes(tables: Tables, job: Job, row: Row): Job {
  const note = tables.sql('SELECT progress, steps, log, attempts, children, batch FROM notes WHERE n = ?').get(row.n!);
  if (note?.progress) job.progress = note.progress as string;
  if (note?.steps) job.progressSteps = readProgressSteps(note.steps as string);
  if (note?.log) Object.assign(job, readLog(note.log as string));
  if (note?.attempts) job.attempts = note.attempts as string;
  if (note?.children) job.children = readChildren(note.children as string);
  if (note?.batch) job.batch = batchCounts(note.batch as string, job.state);
  return job;
}

/** One scan of an index: which rows, and in what order. */
interface Walk {
  where: string;
  by: string;
  values: Value[];
}

/**
 * How a state is listed: the columns that identify a row's position, and the scans through all rows or those after a
 * given one.
 */
interface Order {
  keys: string[];
  walks: (from?: Value[]) => Walk[];
}

function plain(by: string, keys: string[], behind: string, all = 'TRUE'): Order {
  return { keys, walks: (from) => [{ where: from ? behind : all, by, values: from ?? [] }] };
}

const UNGROUPED = 'priority DESC, seq';
const GROUPED = 'grp, priority DESC, seq';
const ENDED = plain('until DESC, n DESC', ['until', 'n'], '(until, n) < (?, ?)', `until < ${HIDDEN}`);

/** Waiting jobs in the order they will run (jobs with a group last, group by group), ended jobs newest first. */
const ORDER: Record<State, Order> = {
  blocked: plain('n', ['n'], 'n > ?'),
  scheduled: plain('at, id', ['at', 'id'], '(at, id) > (?, ?)'),
  ready: { keys: ['grp', 'priority', 'seq'], walks: readyWalks },
  active: plain('worker, n', ['worker', 'n'], '(worker, n) > (?, ?)'),
  done: ENDED,
  dead: ENDED,
  cancelled: ENDED,
};

function readyWalks(from?: Value[]): Walk[] {
  const groups: Walk = { where: 'grp IS NOT NULL', by: GROUPED, values: [] };
  if (!from) return [{ where: 'grp IS NULL', by: UNGROUPED, values: [] }, groups];
  const [group, priority, seq] = from as [Value, Value, Value];
  if (group === null) {
    return [
      { where: 'grp IS NULL AND priority = ? AND seq > ?', by: UNGROUPED, values: [priority, seq] },
      { where: 'grp IS NULL AND priority < ?', by: UNGROUPED, values: [priority] },
      groups,
    ];
  }
  return [
    { where: 'grp = ? AND priority = ? AND seq > ?', by: GROUPED, values: [group, priority, seq] },
    { where: 'grp = ? AND priority < ?', by: GROUPED, values: [group, priority] },
    { where: 'grp > ?', by: GROUPED, values: [group] },
  ];
}

export function list(tables: Tables, queue: number, name: string, options: ListOptions): JobPage {
  const { keys, walks } = ORDER[options.state];
  const from = options.cursor === undefined ? undefined : decodeCursor(options.cursor, keys.length);
  const rows: Row[] = [];
  for (const { where, by, values } of walks(from)) {
    const text = `SELECT ${JOB_COLUMNS}, until FROM jobs WHERE queue = ? AND state = ${S[options.state]} AND ${where}
      ORDER BY ${by} LIMIT ?`;
    rows.push(...tables.sql(text).all(queue, ...values, options.limit - rows.length));
  }
  const jobs = rows.map((row) => withNotes(tables, toJob(name, row), row));
  const last = rows.length < options.limit ? undefined : rows.at(-1);
  return { jobs, cursor: last && encodeCursor(keys.map((key) => last[key]!)) };
}

function encodeCursor(values: Value[]): string {
  return Buffer.from(JSON.stringify(values)).toString('base64url');
}

/** Undefined, and thus the first page, for a cursor that is not ours. */
function decodeCursor(cursor: string, length: number): Value[] | undefined {
  try {
    const values: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return Array.isArray(values) && values.length === length ? (values as Value[]) : undefined;
  } catch {
    return undefined;
  }
}

/** The edges of a job whose upstream has not ended. */
export function dependents(tables: Tables, queue: number, id: string, limit: number): Dependents {
  const up = tables.sql('SELECT n FROM jobs WHERE queue = ? AND id = ?').get(queue, id);
  if (!up) return { jobs: [], total: 0 };
  const rows = tables
    .sql(
      `SELECT queues.name AS queue, jobs.id AS id FROM edges JOIN jobs ON jobs.n = edges.down JOIN queues ON queues.n = jobs.queue
       WHERE edges.up = ? ORDER BY edges.down LIMIT ?`,
    )
    .all(up.n!, limit);
  const total = tables.sql('SELECT count(*) AS n FROM edges WHERE up = ?').get(up.n!)!.n as number;
  return { jobs: rows.map((row) => ({ queue: row.queue as string, id: row.id as string })), total };
}

export function count(tables: Tables, queue: number | undefined): Counts {
  const row = queue === undefined ? undefined : tables.row(queue);
  const counts = Object.fromEntries(STATES.map((state) => [state, row?.[state] ?? 0])) as Counts;
  return row && row.dropped > 0 ? { ...counts, droppedDead: row.dropped } : counts;
}

export function workers(tables: Tables, queue: number): WorkerInfo[] {
  return tables
    .sql('SELECT worker, deadline, info FROM sessions WHERE queue = ? ORDER BY deadline, worker')
    .all(queue)
    .map((row) => ({
      id: row.worker as string,
      deadline: row.deadline as number,
      holds: leasesOf(tables, queue, row.worker as string).length,
      info: row.info as string,
    }));
}

export function leasesOf(tables: Tables, queue: number, worker: string): Lease[] {
  const jobs = tables
    .sql('SELECT n, id, attempt, token FROM jobs WHERE queue = ? AND worker = ? AND state = 3')
    .all(queue, worker)
    .map((row): Lease => ({ worker, token: leaseToken(row), id: row.id as string }));
  const tasks = tables
    .sql('SELECT n, token FROM tasks WHERE queue = ? AND worker = ? AND worker IS NOT NULL')
    .all(queue, worker)
    .map((row): Lease => ({ worker, token: leaseToken(row) }));
  return [...jobs, ...tasks];
}
