import { describe } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import type { RunningBatchJob } from './batch-job.js';
import type { BatchSetup } from './batch-options.js';
import { type Prepare, preparePayload } from './handler-call.js';

/** Forms batches of claimed jobs and runs the handler for them. `Slots` decides when there is room for one, and settles each job. */
export class Batches<T> {
  #running = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly setup: BatchSetup<T>,
    private readonly prepare: Prepare<T>,
    private readonly queue: string,
    /** Called when the oldest waiting job has waited long enough. */
    private readonly due: () => void,
  ) {}

  get size(): number {
    return this.setup.size;
  }

  /** How many batches run. */
  get running(): number {
    return this.#running;
  }

  /**
   * The jobs of the next batch, or undefined if it should wait for more. `waiting` is in the order of claiming. If no more will be claimed
   * as long as these wait, there is nothing to wait for.
   */
  next(waiting: readonly RunningBatchJob<T>[], noMore: boolean): RunningBatchJob<T>[] | undefined {
    const { size, wait, byGroup } = this.setup;
    const oldest = waiting[0]!;
    const ripe = oldest.arrived + wait <= performance.now();
    if (!byGroup) return waiting.length >= size || ripe || noMore ? waiting.slice(0, size) : this.#later(oldest);
    const groups = groupsOf(waiting);
    if (ripe) return groups.get(oldest.group)!.slice(0, size);
    const largest = [...groups.values()].reduce((most, group) => (group.length > most.length ? group : most));
    return largest.length >= size || noMore ? largest.slice(0, size) : this.#later(oldest);
  }

  /** Runs the handler for jobs that have begun; resolves when it has ended, and never rejects. */
  async run(jobs: readonly RunningBatchJob<T>[]): Promise<void> {
    this.#running += 1;
    let open = jobs;
    try {
      const checks = jobs.flatMap((job) => this.#check(job) ?? []);
      if (checks.length > 0) await Promise.all(checks);
      // Some were refused by the schema, or taken away meanwhile.
      open = jobs.filter((job) => !job.isSettled && !job.over);
      if (open.length > 0) await this.#take(open, await this.setup.handler([...open]));
    } catch (error) {
      for (const job of open) job.endWith(error);
    } finally {
      for (const job of jobs) if (job.over) job.endWith(undefined);
      this.#running -= 1;
    }
  }

  #check(job: RunningBatchJob<T>): Promise<void> | undefined {
    try {
      return preparePayload(this.prepare, job)?.catch((error) => job.endWith(error));
    } catch (error) {
      job.endWith(error);
      return undefined;
    }
  }

  /** What the handler returned: nothing, or for each job its result, an error, or a promise of that. */
  async #take(jobs: readonly RunningBatchJob<T>[], returned: unknown): Promise<void> {
    if (returned === undefined) {
      for (const job of jobs) job.end(undefined);
      return;
    }
    if (!Array.isArray(returned)) throw this.#misfit(describe(returned), jobs.length);
    const values: unknown[] = Array.from(returned);
    if (values.length !== jobs.length) {
      for (const value of values) if (isPromise(value)) value.then(undefined, () => {}); // of no interest any more
      throw this.#misfit(`an array of ${values.length}`, jobs.length);
    }
    await Promise.all(jobs.map((job, i) => (isPromise(values[i]) ? follow(values[i], job) : job.end(values[i]))));
  }

  #misfit(given: string, jobs: number): CroreError {
    const asked = 'it returns nothing, or an array with one result for each job';
    return new CroreError(
      'BAD_RESULT',
      `the batch handler of queue '${this.queue}' returned ${given} for ${jobs} jobs: ${asked}`,
    );
  }

  #later({ arrived }: RunningBatchJob<T>): undefined {
    clearTimeout(this.#timer);
    const wait = Math.max(1, Math.ceil(arrived + this.setup.wait - performance.now()));
    this.#timer = setTimeout(this.due, wait).unref();
  }
}

function groupsOf<T>(jobs: readonly RunningBatchJob<T>[]): Map<string | undefined, RunningBatchJob<T>[]> {
  const groups = new Map<string | undefined, RunningBatchJob<T>[]>();
  for (const job of jobs) {
    const known = groups.get(job.group);
    if (known) known.push(job);
    else groups.set(job.group, [job]);
  }
  return groups;
}

async function follow<T>(promise: PromiseLike<unknown>, job: RunningBatchJob<T>): Promise<void> {
  try {
    job.end(await promise);
  } catch (error) {
    job.endWith(error);
  }
}

/** Never throws: a Proxy may. */
function isPromise(value: unknown): value is PromiseLike<unknown> {
  try {
    return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
  } catch {
    return false;
  }
}
