import { groupBy } from '../engine/group-by.js';
import { checkOptions, describe } from '../engine/input/check.js';
import type { AddOptions } from '../engine/input/options.js';
import { CroreError } from '../errors.js';
import type { BatchCounts, JobRef, State } from '../job/job.js';
import { Handle } from './handle.js';
import type { AddManyItem, QueueSetup } from './queue-input.js';

export interface BatchOptions extends Omit<AddOptions, 'batchPolicy' | 'parent' | 'needs'> {
  /**
   * When the job of the batch runs: `finished` (default), when the batch is closed and all members have ended, however they ended;
   * `failure`, also as soon as one has ended without success.
   */
  when?: 'finished' | 'failure';
}

/** What has become of the members of a batch. */
export interface BatchStatus extends BatchCounts {
  /** The state of the job of the batch. */
  state: State;
  /** Members that have not ended. */
  pending: number;
}

/** Something that adds jobs: a queue. */
interface Adder<T, H> {
  addMany(items: readonly AddManyItem<T>[]): Promise<H[]>;
}

type BatchSetup = Pick<QueueSetup, 'engine' | 'name'> & Partial<Pick<QueueSetup, 'codec'>>;

/** How many members to cancel at once. */
const PAGE = 500;

/** Jobs that belong together, and the job that runs when they have ended: it stands for the batch, and has its id. */
export class Batch<T = unknown, R = unknown> implements JobRef {
  readonly queue: string;
  readonly #setup: BatchSetup;

  constructor(
    setup: BatchSetup,
    readonly id: string,
  ) {
    this.#setup = setup;
    this.queue = setup.name;
  }

  /** Adds members to any queue: the same as `queue.addMany(items)` with the option `batch`. Rejects with BATCH_CLOSED once it is closed. */
  addMany<P, H>(queue: Adder<P, H>, items: readonly AddManyItem<P>[]): Promise<H[]> {
    if (!Array.isArray(items)) throw new CroreError('BAD_OPTION', `addMany takes an array, not ${describe(items)}`);
    return queue.addMany((items as readonly AddManyItem<P>[]).map((item) => ({ ...item, batch: this })));
  }

  /** No more members: the job of the batch runs when all have ended. */
  async close(): Promise<void> {
    if ((await this.#store.batches.close(this.queue, this.id)) === undefined) throw this.#unknown();
  }

  /** How many members there are and how they ended, without looking at each. */
  async status(): Promise<BatchStatus> {
    const [job] = await this.#store.get(this.queue, [this.id]);
    if (!job?.batch) throw this.#unknown();
    const { total, done, dead, cancelled } = job.batch;
    return { ...job.batch, state: job.state, pending: total - done - dead - cancelled };
  }

  /** Cancels the members that have not ended; the job of the batch then runs, if it is closed. Returns how many. */
  async cancelMembers(options: { by?: string } = {}): Promise<number> {
    checkOptions(options, ['by'], 'cancelMembers');
    return this.#cancelAll(await this.#openMembers(), options.by);
  }

  /** Cancels the job of the batch, and then its members. Returns how many jobs were cancelled. */
  async cancel(options: { by?: string } = {}): Promise<number> {
    checkOptions(options, ['by'], 'cancel');
    // Its record, which knows the members, may go with it.
    const members = await this.#openMembers();
    const [own] = await this.#store.cancel(this.queue, [this.id], options.by);
    return (own ? 1 : 0) + (await this.#cancelAll(members, options.by));
  }

  /** Resolves with the result of the job of the batch: see `Handle.finished`. */
  finished(options?: Parameters<Handle<T, R>['finished']>[0]): Promise<R> {
    const { engine, codec } = this.#setup;
    return new Handle<T, R>(engine, this.queue, this.id, 'created', codec, true).finished(options);
  }

  async #openMembers(): Promise<JobRef[]> {
    const members: JobRef[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.#store.batches.openMembers(this.queue, this.id, { limit: PAGE, cursor });
      members.push(...page.members);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return members;
  }

  async #cancelAll(members: readonly JobRef[], by?: string): Promise<number> {
    let cancelled = 0;
    for (const [queue, some] of groupBy(members, (member) => member.queue)) {
      for (let i = 0; i < some.length; i += PAGE) {
        const ids = some.slice(i, i + PAGE).map(({ id }) => id);
        cancelled += (await this.#store.cancel(queue, ids, by)).filter(Boolean).length;
      }
    }
    return cancelled;
  }

  get #store() {
    return this.#setup.engine.store;
  }

  #unknown(): CroreError {
    return new CroreError('NOT_FOUND', `there is no batch '${this.id}' in queue '${this.queue}'`);
  }
}
