import { readChildren } from '../../../job/children.js';
import { type Body, type Job, STATES, type State } from '../../../job/job.js';
import { readError } from '../../../job/reported-error.js';
import { decodeSpec } from '../../../job/spec.js';
import { readLog, readProgressSteps } from '../../../job/timed-lines.js';
import type { Row } from '../connection/client.js';
import { makeToken } from './tokens.js';

/** A whole job as stored: `r` are records, `j` jobs, where a fresh one has no row, and `l` the lease of one that was fresh before: see sql/lib/leases.sql. */
export const JOB_COLUMNS = `r.n, r.id, coalesce(j.state, case when l.last >= r.n then 3 else 2 end) as state, coalesce(j.priority, 0) as priority,
  coalesce(j.seq, r.n) as seq, coalesce(j.attempt, case when l.last >= r.n then 1 else 0 end) as attempt, coalesce(j.crashes, 0) as crashes, r.created,
  case when j.n is null and l.last >= r.n then l.at else j.at end as at, j.until, j.grp,
  case when j.n is null and l.last >= r.n then l.worker else j.worker end as worker,
  case when j.n is null and l.last >= r.n then l.token else j.token end as token, j.ran, j.outcome, j.outcome_bytes, r.spec, r.body, r.bytes`;
export const NOTE_COLUMNS = `t.progress, t.steps, t.log, t.attempts, t.children, b.open, b.total, b.done, b.dead, b.cancelled`;
export const NOTE_TABLES = `left join crore.notes t on t.n = r.n left join crore.batches b on b.n = r.n`;
export const LEASES = `left join lateral (select s.last, s.at, s.worker, s.token from crore.leases s
  where j.n is null and s.queue = r.queue and s.first <= r.n order by s.first desc limit 1) l on true`;

export function payloadOf(row: Row): Body {
  return (row.body ?? row.bytes) as Body;
}

export function toJob(queue: string, row: Row): Job {
  const state = STATES[row.state as number]!;
  const job: Job = {
    queue,
    id: row.id as string,
    state,
    payload: payloadOf(row),
    priority: row.priority as number,
    attempt: row.attempt as number,
    crashes: row.crashes as number,
    createdAt: row.created as number,
    spec: decodeSpec((row.spec as string | null) ?? ''),
  };
  Object.assign(job, timesOf(state, row));
  if (row.outcome === null || row.outcome === undefined) {
    if (state === 'done' && row.outcome_bytes) job.result = row.outcome_bytes as Buffer;
  } else if (state === 'done') job.result = row.outcome as string;
  else if (state !== 'active') Object.assign(job, readError(row.outcome as string));
  return withNotes(job, row);
}

function timesOf(state: State, row: Row): Partial<Job> {
  const at = row.at as number;
  switch (state) {
    case 'blocked':
    case 'scheduled':
      return { runAt: at };
    case 'ready':
      return row.ran ? { runAt: Number(row.ran) } : {};
    case 'active':
      return {
        startedAt: at,
        worker: row.worker as string,
        token: makeToken(row.attempt as number, row.n as number, row.token as string),
      };
    case 'done':
      return { finishedAt: at, ...readRan(row.ran as string | null) };
    default:
      return { finishedAt: at };
  }
}

/** The start of a done job and its worker. */
function readRan(ran: string | null): Partial<Job> {
  if (!ran) return {};
  const cut = ran.indexOf(' ');
  return { startedAt: Number(ran.slice(0, cut)), worker: ran.slice(cut + 1) };
}

function withNotes(job: Job, row: Row): Job {
  if (row.progress) job.progress = row.progress as string;
  if (row.steps) job.progressSteps = readProgressSteps(row.steps as string);
  if (row.log) Object.assign(job, readLog(row.log as string));
  if (row.attempts) job.attempts = row.attempts as string;
  if (row.children) job.children = readChildren(row.children as string);
  if (typeof row.total === 'number') {
    const { total, done, dead, cancelled } = row as Record<string, number>;
    const open = row.open === true && job.state === 'blocked';
    job.batch = { open, total: total!, done: done!, dead: dead!, cancelled: cancelled! };
  }
  return job;
}
