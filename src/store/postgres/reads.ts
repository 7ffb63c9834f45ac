import { type Job, type Lease, STATES, type State } from '../../job/job.js';
import type {
  Breaker,
  Counts,
  Dependents,
  JobPage,
  ListOptions,
  QueueLimits,
  QueueSettings,
  WorkerInfo,
} from '../store.js';
import { numbers, texts } from './connection/arguments.js';
import type { PostgresClient, Row } from './connection/client.js';
import { JOB_COLUMNS, LEASES, NOTE_COLUMNS, NOTE_TABLES, toJob } from './records/rows.js';
import { makeToken } from './records/tokens.js';

/** Reads take no locks: each is one statement, and sees what was committed when it began. */

const QUEUE = '(select q.n from crore.queues q where q.name = $1)';

export async function get(client: PostgresClient, queue: string, ids: readonly string[]): Promise<(Job | undefined)[]> {
  const text = `select ${JOB_COLUMNS}, ${NOTE_COLUMNS} from unnest($2::text[]) g(id)
    cross join lateral (select * from crore.records d where d.queue = ${QUEUE} and d.id >= g.id and d.id <= g.id order by d.id limit 1) r
    left join crore.jobs j on j.n = r.n ${LEASES} ${NOTE_TABLES}`;
  const rows = await client.read(text, [queue, texts(ids)]);
  const jobs = new Map(rows.map((row) => [row.id as string, toJob(queue, row)]));
  return ids.map((id) => jobs.get(id));
}

const HIDDEN = 'j.until < 100000000000000';

interface Order {
  /** The columns that identify the place of a row. */
  keys: string[];
  by: string;
  /** Rows behind a place, whose values begin at $4. */
  behind: string;
}

const ENDED: Order = {
  keys: ['until', 'n'],
  by: 'j.until desc, j.n desc',
  behind: '(j.until, j.n) < ($4::bigint, $5::bigint)',
};

/** Waiting jobs in the order they will run (jobs with a group last, group by group), ended jobs newest first. */
const ORDER: Record<State, Order> = {
  blocked: { keys: ['n'], by: 'j.n', behind: 'j.n > $4::bigint' },
  scheduled: { keys: ['at', 'n'], by: 'j.at, j.n', behind: '(j.at, j.n) > ($4::bigint, $5::bigint)' },
  ready: {
    keys: ['grp', 'priority', 'seq'],
    by: 'j.grp nulls first, j.priority desc, j.seq',
    behind: `(j.grp is null and $4::text is null or j.grp = $4::text) and (j.priority < $5::int or j.priority = $5::int and j.seq > $6::bigint)
      or j.grp is not null and ($4::text is null or j.grp > $4::text)`,
  },
  active: {
    keys: ['worker', 'n'],
    by: 'j.worker, j.n',
    behind: '(j.worker, j.n) > ($4::text collate "C", $5::bigint)',
  },
  done: ENDED,
  dead: ENDED,
  cancelled: ENDED,
};

export async function list(client: PostgresClient, queue: string, options: ListOptions): Promise<JobPage> {
  const { keys, by, behind } = ORDER[options.state];
  const from = options.cursor === undefined ? undefined : decodeCursor(options.cursor, keys.length);
  const number = STATES.indexOf(options.state);
  const which = `j.queue = ${QUEUE} and j.state = ${number} and j.state = $3::int ${number > 3 ? `and j.state > 3 and ${HIDDEN}` : ''}`;
  const rowless = ROWLESS[options.state]?.(from ? `and (${behind})` : '');
  const text = `select ${JOB_COLUMNS}, ${NOTE_COLUMNS} from (
      (select j.* from crore.jobs j where ${which} ${from ? `and (${behind})` : ''} order by ${by} limit $2::int) ${rowless ? `union all (${rowless})` : ''}
    ) j join crore.records r on r.queue = j.queue and r.n = j.n ${LEASES} ${NOTE_TABLES} order by ${by} limit $2::int`;
  const rows = await client.read(text, [queue, options.limit, number, ...(from ?? [])]);
  const last = rows.length < options.limit ? undefined : rows.at(-1);
  return { jobs: rows.map((row) => toJob(queue, row)), cursor: last && encodeCursor(keys.map((key) => last[key])) };
}

/** Fresh jobs as rows of jobs, in their order: see sql/lib/ready.sql. */
function freshJobs(behind: string): string {
  return `select j.* from crore.records f cross join lateral jsonb_populate_record(null::crore.jobs,
      jsonb_build_object('n', f.n, 'queue', f.queue, 'state', 2, 'priority', 0, 'seq', f.n, 'attempt', 0, 'crashes', 0, 'size', f.size)) j
    where f.queue = ${QUEUE} and f.n < crore.first_row()
      and f.n >= (select c.head from crore.counters c where c.queue = ${QUEUE} order by c.version desc limit 1)
      and (select c.fresh from crore.counters c where c.queue = ${QUEUE} order by c.version desc limit 1) > 0 ${behind}
    order by f.n limit $2::int`;
}

/** The same for jobs that are leased by a row for all jobs of their claim. */
const LEASED = `crore.leases l join crore.records f on f.queue = l.queue and f.n between l.first and l.last
  and not (l.split and exists (select 1 from crore.jobs o where o.n = f.n))`;

function leasedJobs(behind: string): string {
  return `select j.* from ${LEASED} cross join lateral jsonb_populate_record(null::crore.jobs,
      jsonb_build_object('n', f.n, 'queue', f.queue, 'state', 3, 'priority', 0, 'seq', f.n, 'attempt', 1, 'crashes', 0, 'size', f.size, 'at', l.at,
        'worker', l.worker, 'token', l.token)) j
    where l.queue = ${QUEUE} ${behind} order by j.worker, j.n limit $2::int`;
}

/** Jobs without a row, by their state. */
const ROWLESS: Partial<Record<State, (behind: string) => string>> = { ready: freshJobs, active: leasedJobs };

function encodeCursor(values: unknown[]): string {
  return Buffer.from(JSON.stringify(values)).toString('base64url');
}

type CursorPart = string | number | null;

/** Undefined, and thus the first page, for a cursor that is not ours. */
function decodeCursor(cursor: string, length: number): CursorPart[] | undefined {
  try {
    const values: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return Array.isArray(values) && values.length === length ? (values as CursorPart[]) : undefined;
  } catch {
    return undefined;
  }
}

export async function dependents(
  client: PostgresClient,
  queue: string,
  id: string,
  limit: number,
): Promise<Dependents> {
  const text = `select q.name as queue, r.id, count(*) over () as total from crore.edges e join crore.jobs j on j.n = e.down
    join crore.records r on r.queue = j.queue and r.n = j.n join crore.queues q on q.n = r.queue
    where e.up = (select u.n from crore.records u where u.queue = ${QUEUE} and u.id = $2) order by e.down limit $3::int`;
  const rows = await client.read(text, [queue, id, limit]);
  return {
    jobs: rows.map((row) => ({ queue: row.queue as string, id: row.id as string })),
    total: Number(rows[0]?.total ?? 0),
  };
}

export async function count(client: PostgresClient, queue: string): Promise<Counts> {
  const text = `select * from crore.counters where queue = ${QUEUE} order by version desc limit 1`;
  const [row] = await client.read(text, [queue]);
  const counts = Object.fromEntries(STATES.map((state) => [state, (row?.[state] as number) ?? 0])) as Counts;
  return row && (row.dropped as number) > 0 ? { ...counts, droppedDead: row.dropped as number } : counts;
}

export async function queues(client: PostgresClient): Promise<string[]> {
  const rows = await client.read(`select name from crore.queues where name <> '' order by name`, []);
  return rows.map((row) => row.name as string);
}

const HOLDS = `(select count(*) from crore.jobs j where j.queue = s.queue and j.worker = s.worker and j.state = 3)
  + (select coalesce(sum(l.left_over), 0)::bigint from crore.leases l where l.queue = s.queue and l.worker = s.worker)
  + (select coalesce(sum(l.left_over), 0)::bigint from crore.task_leases l where l.queue = s.queue and l.worker = s.worker)
  + (select count(*) from crore.tasks t where t.queue = s.queue and t.worker = s.worker and t.worker is not null)`;

export async function workers(client: PostgresClient, queue: string): Promise<WorkerInfo[]> {
  const text = `select worker, deadline, info, ${HOLDS} as holds from crore.sessions s where queue = ${QUEUE} order by deadline, worker`;
  const rows = await client.read(text, [queue]);
  return rows.map((row) => ({
    id: row.worker as string,
    deadline: row.deadline as number,
    holds: row.holds as number,
    info: row.info as string,
  }));
}

export async function leasesOf(client: PostgresClient, queue: string, worker: string): Promise<Lease[]> {
  const text = `select j.n, j.attempt, j.token, r.id from crore.jobs j join crore.records r using (n, queue)
      where j.queue = ${QUEUE} and j.worker = $2 and j.state = 3
    union all select f.n, 1, l.token, f.id from ${LEASED} where l.queue = ${QUEUE} and l.worker = $2
    union all select t.n, 0, l.token, null from crore.task_leases l join crore.tasks t on t.queue = l.queue and t.n between l.first and l.last
      and t.worker is null and (t.seq < 0) is not true where l.queue = ${QUEUE} and l.worker = $2
    union all select n, 0, token, null from crore.tasks where queue = ${QUEUE} and worker = $2 and worker is not null`;
  const rows = await client.read(text, [queue, worker]);
  return rows.map((row) => leaseOf(row, worker));
}

function leaseOf(row: Row, worker: string): Lease {
  const token = makeToken(row.attempt as number, row.n as number, row.token as string);
  return row.id === null ? { worker, token } : { worker, token, id: row.id as string };
}

export async function settings(client: PostgresClient, queue: string): Promise<QueueSettings> {
  const text = `select q.paused, q.limits, q.breaker, c.failed, c.broken from crore.queues q left join lateral (
    select failed, broken from crore.counters where queue = q.n order by version desc limit 1) c on true where q.name = $1`;
  const [row] = await client.read(text, [queue]);
  const { limits, breaker, failed, broken } = (row ?? {}) as {
    limits?: QueueLimits | null;
    breaker?: Breaker | null;
    failed?: number | null;
    broken?: number | null;
  };
  const state = { failed: failed ?? 0, ...(broken ? { until: broken } : {}) };
  return { paused: row?.paused === true, limits: limits ?? {}, ...(breaker ? { breaker, breakerState: state } : {}) };
}

/** Numbers of states. */
export function stateNumbers(states: readonly State[]): string {
  return numbers(states.map((state) => STATES.indexOf(state)));
}
