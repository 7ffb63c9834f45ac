import { type EventOptions, followEvents, type JobEvents } from '../engine/events.js';
import { checkName, checkOneOf } from '../engine/input/check.js';
import type { BulkOptions, Filter } from '../engine/input/filter.js';
import { type QueueLimitOptions, resolveLimits } from '../engine/input/limits.js';
import type { AddOptions, UpdateOptions } from '../engine/input/options.js';
import { type BreakerOptions, type BreakerView, breakerView, resolveBreaker } from '../engine/queue/breaker.js';
import { CroreError } from '../errors.js';
import type { BatchPolicy, Bytes, JobRef, State } from '../job/job.js';
import type { ProcessOptions } from '../pool/options.js';
import type { TransactionClient } from '../store/postgres/transactions/connections.js';
import type { Connection } from '../store/sqlite/file/external-connection.js';
import type { Counts, QueueLimits, Store, WorkerInfo } from '../store/store.js';
import type { WorkBatchOptions } from '../worker/handlers/batch-options.js';
import type { WorkOptions } from '../worker/options.js';
import type { BatchWorker, Worker } from '../worker/worker.js';
import type { AddMiddleware } from './add-middleware.js';
import { Batch, type BatchOptions } from './batch.js';
import { Handle, type JobView } from './handle.js';
import { Producer } from './producer.js';
import {
  type AddManyItem,
  type QueueContext,
  type QueueOptions,
  type QueueSetup,
  resolveQueue,
} from './queue-input.js';
import {
  cancelJobs,
  getJob,
  type ListPageOptions,
  listJobs,
  moveJobs,
  removeJobs,
  rerunJob,
  retryDeadJobs,
  updateJob,
} from './queue-jobs.js';
import { type BatchHandler, type Handler, workBatch, workHere, workInPool } from './queue-workers.js';
import { cancelTree, checkTreeOptions, type JobTree, readTree, removeTree } from './tree.js';

/**
 * A queue of jobs with payload `T` and result `R`, and of raw tasks. `P` is what handlers get: the output of the queue's schema, or
 * the payload itself.
 */
export class Queue<T = unknown, R = unknown, P = T> {
  readonly #setup: QueueSetup;
  readonly #producer: Producer<T, R>;

  constructor(
    context: QueueContext,
    readonly name: string,
    options: QueueOptions<T, P> = {},
  ) {
    this.#setup = resolveQueue(context, name, options);
    this.#producer = new Producer(this.#setup);
  }

  /**
   * Runs around every `add` of this queue object, and for every item of `addMany`, before anything is checked; what is added first is
   * outermost. See `AddMiddleware`. In a SQLite file, `addIn` and `addManyIn` are refused then; `push` is
   * not affected.
   */
  use(middleware: AddMiddleware<T, R>): this {
    this.#producer.use(middleware);
    return this;
  }

  /** Adds one job. Calls made in the same turn of the event loop are sent together. */
  add(payload: T, options?: AddOptions): Promise<Handle<T, R>> {
    return this.#producer.add(payload, options);
  }

  /**
   * Adds many jobs, atomically per thousand. One invalid item refuses all of them before anything is added; an unknown upstream
   * job refuses the thousand it belongs to.
   */
  addMany(items: readonly AddManyItem<T>[]): Promise<Handle<T, R>[]> {
    return this.#producer.addMany(items);
  }

  /**
   * Adds one job inside the caller's own transaction, through its connection to the same SQLite file: the job exists exactly when
   * that transaction commits. Outside a transaction it is committed at once.
   */
  addIn(connection: Connection, payload: T, options?: AddOptions): Handle<T, R>;
  /** The same on PostgreSQL, where it is asynchronous, and refused outside a transaction. */
  addIn(connection: TransactionClient, payload: T, options?: AddOptions): Promise<Handle<T, R>>;
  /** Code for both has to wait in any case. */
  addIn(
    connection: Connection | TransactionClient,
    payload: T,
    options?: AddOptions,
  ): Handle<T, R> | Promise<Handle<T, R>>;
  addIn(connection: unknown, payload: T, options?: AddOptions): unknown {
    return this.#producer.addIn(connection, payload, options);
  }

  /** The same for many jobs: adds all of them, or none when one is refused. */
  addManyIn(connection: Connection, items: readonly AddManyItem<T>[]): Handle<T, R>[];
  addManyIn(connection: TransactionClient, items: readonly AddManyItem<T>[]): Promise<Handle<T, R>[]>;
  addManyIn(
    connection: Connection | TransactionClient,
    items: readonly AddManyItem<T>[],
  ): Handle<T, R>[] | Promise<Handle<T, R>[]>;
  addManyIn(connection: unknown, items: readonly AddManyItem<T>[]): unknown {
    return this.#producer.addManyIn(connection, items);
  }

  /**
   * Opens a batch: this job runs, once, when the batch has been closed and all members have ended. Members are added with the option
   * `batch`, to any queue.
   */
  async addBatch(payload: T, { when = 'finished', ...options }: BatchOptions = {}): Promise<Batch<T, R>> {
    const batchPolicy = checkOneOf<BatchPolicy>(when, 'when', ['finished', 'failure']);
    const { id, outcome } = await this.#producer.add(payload, { ...options, batchPolicy });
    if (outcome === 'full') throw new CroreError('QUEUE_FULL', `queue '${this.name}' is full: the batch was not added`);
    return this.batch(id);
  }

  /** A batch that was added by other code. */
  batch(id: string): Batch<T, R> {
    return new Batch(this.#setup, checkName(id, 'batch id'));
  }

  /** Pushes raw tasks, exactly the bytes given; returns how many were accepted (fewer only when the queue is full). */
  push(tasks: string | Bytes | readonly (string | Bytes)[]): Promise<number> {
    return this.#producer.push(tasks);
  }

  /** Starts a worker whose handler is the default export of a module, and runs in processes or threads. */
  work(module: URL, options?: WorkOptions & ProcessOptions): Worker<P>;
  /** Starts a worker. The handler's return value is the result; an exception causes a retry, a `Fatal` does not. */
  work(handler: Handler<P, R>, options?: WorkOptions): Worker<P>;
  work(handler: Handler<P, R> | URL, options?: WorkOptions & ProcessOptions): Worker<P> {
    return handler instanceof URL ? workInPool(this.#setup, handler, options) : workHere(this.#setup, handler, options);
  }

  /**
   * Starts a worker whose handler takes many jobs at once: at most `size`, collected for at most `wait`, of one group if `by` says so.
   * Each job is settled on its own; see `BatchHandler` and `BatchJob`.
   */
  workBatch(handler: BatchHandler<P, R>, options?: WorkBatchOptions): BatchWorker<P, R> {
    return workBatch(this.#setup, handler, options);
  }

  /** A handle to a job that was added by other code. */
  handle(id: string): Handle<T, R> {
    const { engine, codec } = this.#setup;
    return new Handle(engine, this.name, checkName(id, 'job id'), 'created', codec, true);
  }

  get(id: string): Promise<JobView<T, R> | undefined> {
    return getJob(this.#setup, id);
  }

  /** Counts entries by state; raw tasks count as ready or active. */
  count(): Promise<Counts> {
    return this.#store.count(this.name);
  }

  /**
   * Lists a page of jobs in one state, waiting ones in the order they will run, ended ones newest first. With a filter a page may
   * be short or empty and still have a cursor: follow it until there is none.
   */
  list(state: State, options: ListPageOptions = {}): Promise<{ jobs: JobView<T, R>[]; cursor?: string }> {
    return listJobs(this.#setup, state, options);
  }

  workers(): Promise<WorkerInfo[]> {
    return this.#store.workers(this.name);
  }

  /** Cancels a job that has not ended, running or not; returns false when there is nothing to cancel. */
  cancel(id: string, options?: Pick<BulkOptions, 'by'>): Promise<boolean>;
  /** Cancels all matching jobs in steps; returns how many. */
  cancel(filter: Filter, options?: BulkOptions): Promise<number>;
  cancel(which: string | Filter, options: BulkOptions = {}): Promise<boolean | number> {
    return cancelJobs(this.#setup, which, options);
  }

  /**
   * Moves dead jobs (the given ones, the matching ones, or all) to the back of the queue with fresh attempts; returns how many.
   */
  retryDead(which: string | readonly string[] | Filter = {}, options: BulkOptions = {}): Promise<number> {
    return retryDeadJobs(this.#setup, which, options);
  }

  /**
   * Runs an ended job again, with fresh attempts; its result and error are gone. Returns false if there is no such job, or if it has
   * not ended.
   */
  rerun(id: string, options: Pick<BulkOptions, 'by'> = {}): Promise<boolean> {
    return rerunJob(this.#setup, id, options);
  }

  /**
   * Changes a job that has not started: its payload, priority, or time. A new priority or time moves it to the back. Rejects with
   * JOB_STARTED if it has started or ended, and with NOT_FOUND if there is no such job.
   */
  update(id: string, changes: UpdateOptions & { payload?: T }, options: Pick<BulkOptions, 'by'> = {}): Promise<void> {
    return updateJob(this.#setup, id, changes, options);
  }

  /** Makes a job that is scheduled, or waits for a retry, due now. Rejects as `update` does. */
  runNow(id: string, options: Pick<BulkOptions, 'by'> = {}): Promise<void> {
    return this.update(id, { delay: 0 }, options);
  }

  /** Removes the record of an ended job; returns false when there is none. */
  remove(id: string): Promise<boolean>;
  /** Removes the records of all matching ended jobs in steps; returns how many. */
  remove(filter: Filter, options?: BulkOptions): Promise<number>;
  remove(which: string | Filter, options: BulkOptions = {}): Promise<boolean | number> {
    return removeJobs(this.#setup, which, options);
  }

  /** A job with its children, their children, and so on; undefined if there is no such job. */
  tree(id: string): Promise<JobTree | undefined> {
    return readTree(this.#setup, this.#ref(id));
  }

  /** Cancels a job and all its descendants that have not ended; returns how many. */
  async cancelTree(id: string, options: Pick<BulkOptions, 'by'> = {}): Promise<number> {
    return cancelTree(this.#setup, this.#ref(id), checkTreeOptions(options, 'cancelTree').by);
  }

  /** Cancels what has not ended of a job and its descendants, and removes all their records; returns how many. */
  async removeTree(id: string, options: Pick<BulkOptions, 'by'> = {}): Promise<number> {
    return removeTree(this.#setup, this.#ref(id), checkTreeOptions(options, 'removeTree').by);
  }

  /**
   * Moves a job to another queue. One that is scheduled or ready keeps its id, payload, options, time and attempts, and joins the back there;
   * a dead one is ready there with fresh attempts. Rejects with NOT_FOUND, JOB_STARTED, JOB_LINKED (it needs other jobs, or they need it) or
   * ID_TAKEN.
   */
  move(id: string, to: string, options?: Pick<BulkOptions, 'by'>): Promise<void>;
  /** Moves all matching jobs in steps, except those that one by one would be refused; returns how many. */
  move(filter: Filter, to: string, options?: BulkOptions): Promise<number>;
  move(which: string | Filter, to: string, options: BulkOptions = {}): Promise<unknown> {
    return moveJobs(this.#setup, which, to, options);
  }

  /**
   * Sets the limits of the queue across all workers: `concurrency` entries at once, `rate.count` starts per `rate.per`, and the
   * same for each group of jobs. What is left out is not limited; `{}` removes all limits.
   */
  async setLimits(limits: QueueLimitOptions): Promise<void> {
    await this.#store.configure(this.name, { limits: resolveLimits(limits) });
  }

  limits(): Promise<QueueLimits> {
    return this.#store.settings(this.name).then(({ limits }) => limits);
  }

  /**
   * Sets a breaker across all workers: after `failures` failed attempts in a row, no job starts for `pause`; then one may try, and if it
   * succeeds, all go on. `null` removes it.
   */
  async setBreaker(breaker: BreakerOptions | null): Promise<void> {
    await this.#store.configure(this.name, { breaker: resolveBreaker(breaker) });
  }

  /** The breaker as it is now; undefined if there is none. */
  breaker(): Promise<BreakerView | undefined> {
    return this.#store.settings(this.name).then(breakerView);
  }

  /** Stops delivering work to any worker; running jobs continue. */
  pause(): Promise<void> {
    return this.#store.configure(this.name, { paused: true });
  }

  isPaused(): Promise<boolean> {
    return this.#store.settings(this.name).then(({ paused }) => paused);
  }

  /** Ends a pause, and closes the breaker if it is open. */
  resume(): Promise<void> {
    return this.#store.configure(this.name, { paused: false });
  }

  /**
   * Follows the events of this queue's jobs in every process, from now on or since a position. Resolves when events are being
   * recorded. Bounded: the newest ten thousand are kept, and a `gap` event marks where some are missing.
   */
  async events(options: EventOptions = {}): Promise<JobEvents> {
    const { engine, workers } = this.#setup;
    const events = await followEvents(engine, this.name, options, () => workers.delete(closing));
    const closing = { close: async () => events.close() };
    workers.add(closing);
    return events;
  }

  /** Deletes everything in the queue, including what is running. */
  obliterate(): Promise<void> {
    return this.#store.obliterate(this.name);
  }

  #ref(id: string): JobRef {
    return { queue: this.name, id: checkName(id, 'job id') };
  }

  get #store(): Store {
    return this.#setup.engine.store;
  }
}
