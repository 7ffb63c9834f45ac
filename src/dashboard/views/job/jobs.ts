import type { Engine } from '../../../engine/engine.js';
import { checkOneOf } from '../../../engine/input/check.js';
import { type Filter, listMatching, type ResolvedFilter, resolveFilter } from '../../../engine/input/filter.js';
import { CroreError } from '../../../errors.js';
import { type Job, STATES, type State } from '../../../job/job.js';
import { MOST_ATTEMPTS } from '../../../job/spec.js';
import { checkCursor } from '../../../queue/queue-input.js';
import type { JobFilter, JobRow, JobsParameters, JobsView } from '../../api.js';
import { lineOf } from './content.js';

/** Jobs on a page. */
const PAGE = 50;
/** Characters of an error in a list. */
const MOST_ERROR = 300;
/** Characters of a progress that is parsed. */
const MOST_PROGRESS = 2_000;

export async function jobsView(engine: Engine, parameters: JobsParameters): Promise<JobsView> {
  const { queue, cursor } = parameters;
  const state = checkOneOf(parameters.state, 'state', STATES);
  const page = await listMatching(engine, queue, state, filterOf(parameters, [state]), {
    limit: PAGE,
    cursor: checkCursor(cursor),
  });
  return {
    now: engine.store.now(),
    jobs: page.jobs.map(rowOf),
    ...(page.cursor === undefined ? {} : { cursor: page.cursor }),
  };
}

/** The filter of the page, checked; `states` are those that it may name. */
export function filterOf(asked: JobFilter, states: readonly State[]): ResolvedFilter {
  const { state, id, text, group, after, before } = asked;
  const filter: Filter = {
    ...{ state, ...(given(id) ? { id } : {}), ...(given(text) ? { text } : {}), ...(given(group) ? { group } : {}) },
    ...(given(after) ? { after: timeOf(after, 'after') } : {}),
    ...(given(before) ? { before: timeOf(before, 'before') } : {}),
  };
  return resolveFilter(filter, states, 'filter');
}

function given(text: unknown): text is string {
  if (text !== undefined && typeof text !== 'string')
    throw new CroreError('BAD_OPTION', 'filter: only texts are allowed');
  return text !== undefined && text !== '';
}

function timeOf(text: string, what: string): Date {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) throw new CroreError('BAD_OPTION', `${what}: '${text.slice(0, 40)}' is not a time`);
  return time;
}

export function rowOf(job: Job): JobRow {
  return {
    ...headOf(job),
    payload: lineOf(job.payload),
    ...(job.error === undefined ? {} : { error: cut(job.error) }),
  };
}

/** What a row and the page of a job have in common. */
export function headOf(job: Job): Omit<JobRow, 'payload' | 'error'> {
  const { queue, id, state, attempt, crashes, priority, createdAt, spec } = job;
  const { runAt, startedAt, finishedAt, worker } = job;
  return {
    ...{ queue, id, state, attempt, crashes, priority, createdAt },
    ...(spec.attempts >= MOST_ATTEMPTS ? {} : { maxAttempts: spec.attempts }),
    ...(spec.group === undefined ? {} : { group: spec.group }),
    ...(runAt === undefined ? {} : { runAt }),
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(finishedAt === undefined ? {} : { finishedAt }),
    ...(worker === undefined ? {} : { worker }),
    ...(job.progress === undefined ? {} : { progress: progressOf(job.progress) }),
  };
}

/** A progress that is large, or no JSON, is shown as text. */
function progressOf(text: string): unknown {
  try {
    return text.length > MOST_PROGRESS ? `${text.slice(0, MOST_PROGRESS)}…` : (JSON.parse(text) as unknown);
  } catch {
    return text;
  }
}

function cut(text: string): string {
  return text.length > MOST_ERROR ? `${text.slice(0, MOST_ERROR)}…` : text;
}
