import type { Job } from '../../job/job.js';
import type { JobPage, ListOptions, Store } from '../../store/store.js';
import { ClaimSize } from '../claims/claim-size.js';
import { CallError } from '../status.js';

/** Maximum bytes of jobs in one response; a single job may be larger. */
export const MOST_ANSWERED = 16 * 1024 * 1024;
/** The largest message this server sends. */
export const LARGEST_ANSWER = 64 * 1024 * 1024;
/** How many jobs to read at once while their sizes are unknown, and afterwards. */
const FIRST = 16;
const MOST = 200;
const OVERHEAD = 300;

/** Collects the jobs of one response, read in portions and measured before too many of them are in memory. */
class Answer<T> {
  readonly all: T[] = [];
  readonly #claimSize = new ClaimSize(MOST_ANSWERED);
  #bytes = 0;

  /** How many of the remaining jobs to read next. */
  next(left: number): number {
    return Math.min(left, this.all.length === 0 ? FIRST : MOST, this.#claimSize.room(this.#bytes, 0));
  }

  /** How many of these fit; the first job of a response always does, if it can be sent at all. */
  fitting(jobs: readonly (Job | undefined)[]): number {
    let bytes = this.#bytes;
    const cut = jobs.findIndex((job, i) => {
      bytes += sizeOf(job);
      return bytes > MOST_ANSWERED && this.all.length + i > 0;
    });
    const fits = cut < 0 ? jobs.length : cut;
    const [first] = jobs;
    if (this.all.length === 0 && first && sizeOf(first) > LARGEST_ANSWER) {
      const size = `${sizeOf(first)} bytes, the limit of a response is ${LARGEST_ANSWER}`;
      throw new CallError('RESOURCE_EXHAUSTED', `job '${first.id}' of queue '${first.queue}' has ${size}`);
    }
    return fits;
  }

  add(items: readonly T[], jobs: readonly (Job | undefined)[]): void {
    if (items.length === 0) return;
    let bytes = 0;
    for (const job of jobs) bytes += sizeOf(job);
    this.all.push(...items);
    this.#bytes += bytes;
    this.#claimSize.seen(items.length, bytes);
  }
}

/** A page of at most `limit` jobs, or fewer if they would be too large; its cursor continues from there. */
export async function listFitting(store: Store, queue: string, options: ListOptions): Promise<JobPage> {
  const answer = new Answer<Job>();
  let { cursor } = options;
  for (;;) {
    const limit = answer.next(options.limit - answer.all.length);
    if (limit <= 0) return { jobs: answer.all, cursor };
    let page = await store.list(queue, { ...options, cursor, limit });
    const fits = answer.fitting(page.jobs);
    if (fits < page.jobs.length) {
      // Reading a page of exactly that length yields the cursor behind the last job that fits.
      if (fits > 0) page = await store.list(queue, { ...options, cursor, limit: fits });
      return { jobs: [...answer.all, ...(fits > 0 ? page.jobs : [])], cursor: fits > 0 ? page.cursor : cursor };
    }
    answer.add(page.jobs, page.jobs);
    cursor = page.cursor;
    if (cursor === undefined) return { jobs: answer.all };
  }
}

/** The jobs with these ids, in order, or only the first of them if all would be too large. */
export async function getFitting(store: Store, queue: string, ids: readonly string[]): Promise<(Job | undefined)[]> {
  const answer = new Answer<Job | undefined>();
  while (answer.all.length < ids.length) {
    const from = answer.all.length;
    const limit = answer.next(ids.length - from);
    if (limit <= 0) break;
    const jobs = await store.get(queue, ids.slice(from, from + limit));
    const fits = answer.fitting(jobs);
    answer.add(jobs.slice(0, fits), jobs.slice(0, fits));
    if (fits < jobs.length) break;
  }
  return answer.all;
}

export function sizeOf(job: Job | undefined): number {
  if (!job) return 1;
  const { payload, result, error, progress, log } = job;
  const more = (result?.length ?? 0) + (error?.length ?? 0) + (progress?.length ?? 0) + (log?.length ?? 0);
  return OVERHEAD + payload.length + more;
}
