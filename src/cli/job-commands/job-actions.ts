import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { checkName } from '../../engine/input/check.js';
import { CroreError, isCroreError } from '../../errors.js';
import type { Filter, JobView, Queue, State } from '../../index.js';
import { time, whole } from '../option-values.js';
import { type Output, printable } from '../output.js';
import { given } from './job-options.js';
import { jobTable } from './job-view.js';

/** What `crore job` and `crore dead` share: actions on single jobs, and lists of many. */

export function checkIds(queue: string, ids: readonly string[]): void {
  checkName(queue, 'queue name');
  for (const id of ids) checkName(id, 'job id');
}

/** An action on single jobs, with the words for its success and its refusal. */
export interface Verb {
  /** Such as `cancelled`. */
  done: string;
  /** Why a job in this state was not changed. */
  refusal: string;
  act: (queue: Queue, id: string) => Promise<boolean>;
}

/** Who uses the command line, for the history of the jobs. */
export function byUser(): string {
  try {
    return `${userInfo().username} on the command line`;
  } catch {
    return 'the command line'; // a user id without a name
  }
}

export const RETRY: Verb = {
  done: 'retried',
  refusal: 'only dead jobs can be retried',
  act: async (queue, id) => (await queue.retryDead(id, { by: byUser() })) === 1,
};

export const RERUN: Verb = {
  done: 'runs again',
  refusal: 'only ended jobs can run again',
  act: (queue, id) => queue.rerun(id, { by: byUser() }),
};

export const RUN_NOW: Verb = {
  done: 'due now',
  refusal: 'it has started or ended',
  act: (queue, id) => ifWaiting(queue.runNow(id, { by: byUser() })),
};

/** False for a job that is missing or no longer waits, which is told with its state. */
export async function ifWaiting(change: Promise<void>): Promise<boolean> {
  try {
    await change;
    return true;
  } catch (error) {
    if (isCroreError(error) && (error.code === 'JOB_STARTED' || error.code === 'NOT_FOUND')) return false;
    throw error;
  }
}

export const CANCEL: Verb = {
  done: 'cancelled',
  refusal: 'it has ended',
  act: (queue, id) => queue.cancel(id, { by: byUser() }),
};

export const REMOVE: Verb = {
  done: 'removed',
  refusal: 'only ended jobs can be removed; cancel it first',
  act: (queue, id) => queue.remove(id),
};

/** Applies the action to each job; exit code 1 when one of them was not changed, which is reported on stderr. */
export async function actOn(out: Output, queue: Queue, ids: readonly string[], verb: Verb): Promise<number> {
  let code = 0;
  for (const id of ids) {
    const base = { queue: queue.name, id };
    if (await verb.act(queue, id)) {
      out.say({ ...base, outcome: verb.done }, `${printable(id, 512)}  ${verb.done}`);
      continue;
    }
    code = 1;
    const state = (await queue.get(id))?.state;
    if (out.json) out.say({ ...base, outcome: state ? 'refused' : 'missing', state }, '');
    complain(state ? `job '${printable(id)}' is ${state}: ${verb.refusal}` : missing(queue.name, id));
  }
  return code;
}

export function missing(queue: string, id: string): string {
  return `no job '${printable(id)}' in queue '${printable(queue)}'`;
}

export function complain(text: string): void {
  process.stderr.write(`crore: ${text}\n`);
}

/** The options of a filter. */
export interface FilterOptions {
  prefix?: string;
  match?: string;
  before?: string;
  after?: string;
}

export function filterable(command: Command): Command {
  return command
    .option('--prefix <text>', 'Only ids with this prefix.')
    .option('--match <text>', 'Only jobs with this text in payload, error or header.')
    .option('--after <time>', 'Only jobs added at or after this time.')
    .option('--before <time>', 'Only jobs added before this time.');
}

export function filterOf(options: FilterOptions): Omit<Filter, 'state'> {
  return given({
    id: options.prefix,
    text: options.match,
    before: time(options.before, '--before'),
    after: time(options.after, '--after'),
  });
}

export interface ListOptions extends FilterOptions {
  limit?: string;
  all?: boolean;
}

export function listable(command: Command): Command {
  return filterable(command)
    .option('--limit <n>', 'Maximum number of jobs (default: 100).')
    .option('--all', 'No limit.');
}

const PAGE = 100;

/** How many jobs to list: a number, or all. */
export function limitOf({ limit, all }: ListOptions): number {
  if (all && limit !== undefined) throw new CroreError('BAD_OPTION', 'give --limit or --all, not both');
  return all ? Number.POSITIVE_INFINITY : (whole(limit, '--limit', 1) ?? PAGE);
}

/** Lists jobs in these states, page by page, until there are enough or the reader is gone. */
export async function listJobs(
  out: Output,
  queue: Queue,
  states: readonly State[],
  limit: number,
  filter: Omit<Filter, 'state'>,
): Promise<void> {
  const show = jobTable(out);
  let left = limit;
  for (const state of states) {
    let cursor: string | undefined;
    do {
      if (out.closed) return;
      if (left <= 0) {
        out.remark(`showing the first ${limit}; there may be more: use --limit N or --all`);
        return;
      }
      const page: { jobs: JobView<unknown, unknown>[]; cursor?: string } = await queue.list(state, {
        limit: Math.min(left, PAGE),
        cursor,
        filter,
      });
      show(page.jobs);
      left -= page.jobs.length;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
}
