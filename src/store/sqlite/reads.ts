import { type Job, type Lease, STATES, type State } from '../../job/job.js';
import type { Counts, ListOptions, Page, WorkerInfo } from '../store.js';
import type { Row, Value } from './driver.js';
import { JOB_COLUMNS, leaseToken, S, type Tables, toJob } from './table.js';

export function get(tables: Tables, queue: number, name: string, ids: readonly string[]): (Job | undefined)[] {
  const select = tables.sql(`SELECT ${JOB_COLUMNS} FROM jobs WHERE queue = ? AND id = ?`);
  return ids.map((id) => {
    const row = select.get(queue, id);
    return row && withNotes(tables, toJob(name, row), row);
  });
}

function withNotes(tables: Tables, job: Job, row: Row): Job {
  const note = tables.sql('SELECT progress, log FROM notes WHERE n = ?').get(row.n!);
  if (note?.progress) job.progress = note.progress as string;
  if (note?.log) job.log = note.log as string;
  return job;
}

/**
 * Order of each state's listing (waiting jobs as they will run, ended ones newest first), and what lies behind a row of
 * it: conditions to try one after the other, each of which an index answers.
 */
interface Order {
  by: string;
  keys: string[];
  behind: { where: string; values: (keys: Value[]) => Value[] }[];
}
const all = (keys: Value[]) => keys;
const ENDED: Order = {
  by: 'until DESC, n DESC',
  keys: ['until', 'n'],
  behind: [{ where: '(until, n) < (?, ?)', values: all }],
};
const ORDER: Record<State, Order> = {
  blocked: { by: 'n', keys: ['n'], behind: [{ where: 'n > ?', values: all }] },
  scheduled: { by: 'at, id', keys: ['at', 'id'], behind: [{ where: '(at, id) > (?, ?)', values: all }] },
  ready: {
    by: 'priority DESC, seq',
    keys: ['priority', 'seq'],
    behind: [
      { where: 'priority = ? AND seq > ?', values: all },
      { where: 'priority < ?', values: ([priority]) => [priority!] },
    ],
  },
  active: { by: 'worker, n', keys: ['worker', 'n'], behind: [{ where: '(worker, n) > (?, ?)', values: all }] },
  done: ENDED,
  dead: ENDED,
  cancelled: ENDED,
};

export function list(tables: Tables, queue: number, name: string, options: ListOptions): Page {
  const order = ORDER[options.state];
  const from = options.cursor === undefined ? undefined : decodeCursor(options.cursor, order.keys.length);
  const steps = from ? order.behind.map(({ where, values }) => ({ where, values: values(from) })) : [EVERYTHING];
  const rows: Row[] = [];
  for (const { where, values } of steps) {
    const text = `SELECT ${JOB_COLUMNS}, until FROM jobs WHERE queue = ? AND state = ${S[options.state]} AND ${where}
      ORDER BY ${order.by} LIMIT ?`;
    rows.push(...tables.sql(text).all(queue, ...values, options.limit - rows.length));
  }
  const jobs = rows.map((row) => withNotes(tables, toJob(name, row), row));
  const last = rows.length < options.limit ? undefined : rows.at(-1);
  return { jobs, cursor: last && encodeCursor(order.keys.map((key) => last[key]!)) };
}

const EVERYTHING = { where: 'TRUE', values: [] as Value[] };

function encodeCursor(values: Value[]): string {
  return Buffer.from(JSON.stringify(values)).toString('base64url');
}

/** Nothing, and so the first page, for a cursor of somebody else's making. */
function decodeCursor(cursor: string, length: number): Value[] | undefined {
  try {
    const values: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return Array.isArray(values) && values.length === length ? (values as Value[]) : undefined;
  } catch {
    return undefined;
  }
}

export function count(tables: Tables, queue: number | undefined): Counts {
  const row = queue === undefined ? undefined : tables.row(queue);
  return Object.fromEntries(STATES.map((state) => [state, row?.[state] ?? 0])) as Counts;
}

export function workers(tables: Tables, queue: number): WorkerInfo[] {
  return tables
    .sql('SELECT worker, deadline, info FROM sessions WHERE queue = ? ORDER BY deadline, worker')
    .all(queue)
    .map((row) => ({
      id: row.worker as string,
      deadline: row.deadline as number,
      holds: held(tables, queue, row.worker as string).length,
      info: row.info as string,
    }));
}

export function held(tables: Tables, queue: number, worker: string): Lease[] {
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
