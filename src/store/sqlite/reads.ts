import { type Job, type Lease, STATES, type State } from '../../job/job.js';
import type { Counts, ListOptions, Page, WorkerInfo } from '../store.js';
import type { Row } from './driver.js';
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

/** Order and page key of each state's listing: waiting jobs as they will run, ended ones newest first. */
const ORDER: Record<State, string> = {
  blocked: 'n',
  scheduled: 'at, id',
  ready: 'priority DESC, seq',
  active: 'worker, n',
  done: 'until DESC, n DESC',
  dead: 'until DESC, n DESC',
  cancelled: 'until DESC, n DESC',
};

export function list(tables: Tables, queue: number, name: string, options: ListOptions): Page {
  const from = Number(options.cursor ?? 0);
  const rows = tables
    .sql(
      `SELECT ${JOB_COLUMNS} FROM jobs WHERE queue = ? AND state = ${S[options.state]} ORDER BY ${ORDER[options.state]} LIMIT ? OFFSET ?`,
    )
    .all(queue, options.limit, from);
  const jobs = rows.map((row) => withNotes(tables, toJob(name, row), row));
  return { jobs, cursor: rows.length < options.limit ? undefined : String(from + options.limit) };
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
