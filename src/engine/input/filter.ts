import { CroreError } from '../../errors.js';
import { type Job, STATES, type State } from '../../job/job.js';
import type { JobPage } from '../../store/store.js';
import type { Engine } from '../engine.js';
import { checkOneOf, checkOptions, describe } from './check.js';

/** Selects jobs of a queue; a field that is left out matches every job. */
export interface Filter {
  /** One state or several; each command has its own default. */
  state?: State | readonly State[];
  /** Prefix of the job id. */
  id?: string;
  /** Text contained in the payload (as JSON), the error, or a header. */
  text?: string;
  /** The job's group. */
  group?: string;
  /** Added at or after this time. */
  after?: Date | number;
  /** Added before this time. */
  before?: Date | number;
}

export interface ResolvedFilter {
  states: readonly State[];
  matches: (job: Job) => boolean;
}

const KNOWN = ['state', 'id', 'text', 'group', 'after', 'before'] as const;

/** Checks a filter; `states` are the states the command can act on, and the default. */
export function resolveFilter(filter: Filter, states: readonly State[], what: string): ResolvedFilter {
  checkOptions(filter, KNOWN, what);
  const asked = filter.state === undefined ? states : [filter.state].flat();
  for (const state of asked) checkOneOf(state, `${what}: state`, states.length === 0 ? STATES : states);
  const id = text(filter.id, `${what}: id`);
  const words = text(filter.text, `${what}: text`);
  const group = text(filter.group, `${what}: group`);
  const after = time(filter.after, `${what}: after`) ?? Number.NEGATIVE_INFINITY;
  const before = time(filter.before, `${what}: before`) ?? Number.POSITIVE_INFINITY;
  const matches = (job: Job) =>
    (id === undefined || job.id.startsWith(id)) &&
    (group === undefined || job.spec.group === group) &&
    job.createdAt >= after &&
    job.createdAt < before &&
    (words === undefined || holds(job, words));
  return { states: asked, matches };
}

function text(value: unknown, what: string): string | undefined {
  if (value !== undefined && typeof value !== 'string')
    throw new CroreError('BAD_OPTION', `${what} must be a string, not ${describe(value)}`);
  return value;
}

function time(value: Date | number | undefined, what: string): number | undefined {
  const ms = value instanceof Date ? value.getTime() : value;
  if (ms !== undefined && (typeof ms !== 'number' || Number.isNaN(ms)))
    throw new CroreError('BAD_OPTION', `${what} must be a Date or milliseconds since 1970, not ${describe(value)}`);
  return ms;
}

function holds(job: Job, words: string): boolean {
  const payload = typeof job.payload === 'string' ? job.payload : Buffer.from(job.payload).toString('latin1');
  if (payload.includes(words) || job.error?.includes(words)) return true;
  return Object.values(job.spec.headers ?? {}).some((value) => value.includes(words));
}

/** How many records one call of `list` examines before it returns what it has found. */
const MOST_LOOKED_AT = 5_000;
const MOST_PAGES = 50;

/**
 * Returns a page of matching jobs. It may have fewer than `limit` jobs, or none, and still have a cursor, when many records did
 * not match.
 */
export async function listMatching(
  engine: Engine,
  queue: string,
  state: State,
  { matches }: ResolvedFilter,
  options: { limit: number; cursor?: string },
): Promise<JobPage> {
  const jobs: Job[] = [];
  let { cursor } = options;
  let looked = 0;
  for (let page = 0; page < MOST_PAGES && looked < MOST_LOOKED_AT; page++) {
    const limit = options.limit - jobs.length;
    const found = await engine.store.list(queue, { state, limit, cursor });
    looked += limit;
    jobs.push(...found.jobs.filter(matches));
    cursor = found.cursor;
    if (cursor === undefined || jobs.length >= options.limit) break;
  }
  return { jobs, cursor };
}

/** Ids per step of a bulk command. */
const CHUNK = 500;
/** Jobs that are looked at beyond twice the number there was at the beginning. */
const SLACK = 10_000;

export interface BulkOptions {
  /** Called after each step with the number of jobs examined and the number changed. */
  progress?: (seen: number, changed: number) => void;
  /** Stops the operation between two steps. */
  signal?: AbortSignal;
  /** Who does it, for the history of the jobs (`actions` of a job), if it is a person. */
  by?: string;
}

export const BULK_KNOWN = ['progress', 'signal', 'by'] as const;

/** Applies an action to every matching job, step by step; returns how many were changed. */
export async function forEachMatching(
  engine: Engine,
  queue: string,
  { states, matches }: ResolvedFilter,
  act: (ids: string[]) => Promise<boolean[]>,
  { progress, signal }: BulkOptions,
): Promise<number> {
  let seen = 0;
  let changed = 0;
  const began = engine.store.now();
  const counts = await engine.store.count(queue);
  for (const state of states) {
    let cursor: string | undefined;
    // Jobs that are added meanwhile are left alone, and do not make it go on for ever.
    const most = seen + 2 * counts[state] + SLACK;
    do {
      signal?.throwIfAborted();
      const page: JobPage = await engine.store.list(queue, { state, limit: CHUNK, cursor });
      const ids = page.jobs.filter((job) => job.createdAt <= began && matches(job)).map((job) => job.id);
      if (ids.length > 0) changed += (await act(ids)).filter(Boolean).length;
      seen += page.jobs.length;
      progress?.(seen, changed);
      cursor = page.cursor;
    } while (cursor !== undefined && seen < most);
  }
  return changed;
}
