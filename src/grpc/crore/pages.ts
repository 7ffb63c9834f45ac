import type { Job } from '../../job/job.js';
import type { JobPage, ListOptions, Store } from '../../store/store.js';
import { ClaimSize } from '../claim-size.js';
import { CallError } from '../status.js';

/** Bytes of the jobs of one answer; one job alone may have more. */
export const MOST_ANSWERED = 16 * 1024 * 1024;
/** The largest message that leaves this server. */
export const LARGEST_ANSWER = 64 * 1024 * 1024;
/** Jobs read at once while nothing is known about their sizes, and later. */
const FIRST = 16;
const MOST = 200;
const OVERHEAD = 300;

/** Jobs that go into one answer, read in portions and counted before there are too many of them in memory. */
class Answer<T> {
  readonly all: T[] = [];
  readonly #claimSize = new ClaimSize(MOST_ANSWERED);
  #bytes = 0;

  /** How many to read next, of so many. */
  next(left: number): number {
    return Math.min(left, this.all.length === 0 ? FIRST : MOST, this.#claimSize.room(this.#bytes, 0));
  }

  /** How many of these fit; the first of an answer does in any case, if it can be sent at all. */
  fitting(jobs: readonly (Job | undefined)[]): number {
    let bytes = this.#bytes;
    const cut = jobs.findIndex((job, i) => {
      bytes += sizeOf(job);
      return bytes > MOST_ANSWERED && this.all.length + i > 0;
    });
    const fits = cut < 0 ? jobs.length : cut;
    const [first] = jobs;
    if (this.all.length === 0 && first && sizeOf(first) > LARGEST_ANSWER) {
      const size = `${sizeOf(first)} bytes, over the ${LARGEST_ANSWER} of an answer`;
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

/** A page of at most `limit` jobs, and of fewer where they would be too large; its cursor goes on from there. */
export async function listFitting(store: Store, queue: string, options: ListOptions): Promise<JobPage> {
  const answer = new Answer<Job>();
  let { cursor } = options;
  for (;;) {
    const limit = answer.next(options.limit - answer.all.length);
    if (limit <= 0) return { jobs: answer.all, cursor };
    let page = await store.list(queue, { ...options, cursor, limit });
    const fits = answer.fitting(page.jobs);
    if (fits < page.jobs.length) {
      // A cursor behind the last that fits is what a page of that length has.
      if (fits > 0) page = await store.list(queue, { ...options, cursor, limit: fits });
      return { jobs: [...answer.all, ...(fits > 0 ? page.jobs : [])], cursor: fits > 0 ? page.cursor : cursor };
    }
    answer.add(page.jobs, page.jobs);
    cursor = page.cursor;
    if (cursor === undefined) return { jobs: answer.all };
  }
}

/** The jobs of these ids, in their order, and only the first of them where all would be too large. */
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
