import type { StandardSchemaV1 } from '@standard-schema/spec';
import { checkInteger, checkName, checkOneOf, checkOptions, describe } from './engine/check.js';
import { type Codec, checkCodec } from './engine/codec.js';
import { chunks, type Engine } from './engine/engine.js';
import { type EventOptions, followEvents, type JobEvents } from './engine/events.js';
import {
  BULK_KNOWN,
  type BulkOptions,
  type Filter,
  forEachMatching,
  listMatching,
  resolveFilter,
} from './engine/filter.js';
import { type QueueLimitOptions, resolveLimits } from './engine/limits.js';
import { type AddOptions, resolveChanges, resolveJob, type UpdateOptions } from './engine/options.js';
import { encodeValue, validate } from './engine/payload.js';
import { CroreError } from './errors.js';
import { Handle, type JobView, viewOf } from './handle.js';
import { type Bytes, isWaiting, type NewJob, STATES, type State } from './job/job.js';
import { HandlerPool } from './pool/handler-pool.js';
import {
  checkModule,
  type ProcessOptions,
  refusePath,
  refuseProcessOptions,
  resolveProcessOptions,
} from './pool/options.js';
import {
  type AddManyItem,
  atItem,
  checkCursor,
  readEntry,
  resolveCapacity,
  splitItem,
  withHeaders,
} from './queue-input.js';
import type { Connection } from './store/sqlite/file/external-connection.js';
import type { AddOutcome, Capacity, Counts, QueueLimits, WorkerInfo } from './store/store.js';
import { isTracing, traceAdd, traced } from './tracing.js';
import type { Heartbeat } from './worker/heartbeat/heartbeat.js';
import { checkFunction, type ResolvedWorkOptions, resolveWorkOptions, type WorkOptions } from './worker/options.js';
import { type ActiveJob, describeEntry, type RunningJob, type Settled } from './worker/running.js';
import type { Prepare } from './worker/slots.js';
import { Worker } from './worker/worker.js';

export interface QueueOptions<T, P = unknown> {
  /** Refuses new entries, with outcome `full`, beyond this many waiting entries or bytes. */
  limits?: Capacity;
  /**
   * Any Standard Schema (zod, valibot, arktype …): validates payloads in `add`, and again before the handler runs, which gets the
   * schema's output.
   */
  schema?: StandardSchemaV1<T, P>;
  /** Encodes payloads and results, after they became JSON and before they are stored: encryption, compression. */
  codec?: Codec;
}

/** What all queues of a connection share. */
export interface QueueContext {
  engine: Engine;
  heartbeat: Heartbeat;
  maxPayload: number;
  onError: (error: Error, what: string) => void;
  /** Workers and listeners to close together with the connection. */
  workers: Set<{ close(): Promise<void> }>;
  isClosed: () => boolean;
}

export interface ListPageOptions {
  /** Maximum number of jobs per page; default 100. */
  limit?: number;
  /** The cursor returned with the previous page. */
  cursor?: string;
  filter?: Omit<Filter, 'state'>;
}

/** Returns the result, or what `job.snooze()` or `job.release()` returned. */
export type Handler<P, R> = (job: ActiveJob<P>) => R | Settled | Promise<R | Settled>;

/**
 * A queue of jobs with payload `T` and result `R`, and of raw tasks. `P` is what handlers get: the output of the queue's schema, or
 * the payload itself.
 */
export class Queue<T = unknown, R = unknown, P = T> {
  readonly #context: QueueContext;
  readonly #capacity: Capacity;
  readonly #schema: StandardSchemaV1<unknown, unknown> | undefined;
  readonly #codec: Codec | undefined;

  constructor(
    context: QueueContext,
    readonly name: string,
    options: QueueOptions<T, P> = {},
  ) {
    checkOptions(options, ['limits', 'schema', 'codec'], 'queue');
    this.#context = context;
    this.#capacity = resolveCapacity(options.limits);
    this.#schema = options.schema as StandardSchemaV1<unknown, unknown> | undefined;
    this.#codec = checkCodec(options.codec);
  }

  /** Adds one job. Calls made in the same turn of the event loop are sent together. */
  add(payload: T, options?: AddOptions): Promise<Handle<T, R>> {
    if (!isTracing()) return this.#add(payload, options);
    return traceAdd(this.name, 1, (headers) => this.#add(payload, withHeaders(options, headers)));
  }

  async #add(payload: T, options: AddOptions | undefined): Promise<Handle<T, R>> {
    const job = await this.#resolve(payload, options);
    const outcome = await this.#engine.add(this.name, job, this.#capacity);
    return this.#handle(job, outcome);
  }

  /**
   * Adds many jobs, atomically per thousand. One invalid item refuses all of them before anything is added; an unknown upstream
   * job refuses the thousand it belongs to.
   */
  async addMany(items: readonly AddManyItem<T>[]): Promise<Handle<T, R>[]> {
    if (!Array.isArray(items)) throw new CroreError('BAD_OPTION', `addMany takes an array, not ${describe(items)}`);
    return traceAdd(this.name, items.length, (headers) => this.#addMany(items as readonly AddManyItem<T>[], headers));
  }

  async #addMany(
    items: readonly AddManyItem<T>[],
    headers: Record<string, string> | undefined,
  ): Promise<Handle<T, R>[]> {
    const jobs: NewJob[] = [];
    for (const [i, item] of items.entries()) {
      try {
        const [payload, options] = splitItem(item);
        const resolved = this.#resolve(payload, withHeaders(options, headers));
        jobs.push(resolved instanceof Promise ? await resolved : resolved);
      } catch (error) {
        throw atItem(error, `addMany, item ${i}`);
      }
    }
    const outcomes = await this.#engine.addMany(this.name, jobs, this.#capacity);
    return outcomes.map((outcome, i) => this.#handle(jobs[i]!, outcome));
  }

  /**
   * Adds one job inside the caller's own transaction, through its connection to the same SQLite file: the job exists exactly when
   * that transaction commits. Outside a transaction it is committed at once.
   */
  addIn(connection: Connection, payload: T, options?: AddOptions): Handle<T, R> {
    return this.#addAllIn(connection, [this.#resolveNow(payload, options)])[0]!;
  }

  /** The same for many jobs: adds all of them, or none when one is refused. */
  addManyIn(connection: Connection, items: readonly AddManyItem<T>[]): Handle<T, R>[] {
    if (!Array.isArray(items)) throw new CroreError('BAD_OPTION', `addManyIn takes an array, not ${describe(items)}`);
    const jobs = (items as readonly AddManyItem<T>[]).map((item, i) => {
      try {
        return this.#resolveNow(...splitItem(item));
      } catch (error) {
        throw atItem(error, `addManyIn, item ${i}`);
      }
    });
    return this.#addAllIn(connection, jobs);
  }

  /** Pushes raw tasks, exactly the bytes given; returns how many were accepted (fewer only when the queue is full). */
  async push(tasks: string | Bytes | readonly (string | Bytes)[]): Promise<number> {
    if (typeof tasks === 'string' || tasks instanceof Uint8Array) {
      return (await this.#engine.push(this.name, this.#task(tasks), this.#capacity)) ? 1 : 0;
    }
    if (!Array.isArray(tasks))
      throw new CroreError('BAD_PAYLOAD', `a task must be a string or bytes, not ${describe(tasks)}`);
    const all = tasks.map((task) => this.#task(task));
    return this.#engine.pushMany(this.name, all, this.#capacity);
  }

  /** Starts a worker whose handler is the default export of a module, and runs in processes or threads. */
  work(module: URL, options?: WorkOptions & ProcessOptions): Worker<P>;
  /** Starts a worker. The handler's return value is the result; an exception causes a retry, a `Fatal` does not. */
  work(handler: Handler<P, R>, options?: WorkOptions): Worker<P>;
  work(handler: Handler<P, R> | URL, options?: WorkOptions & ProcessOptions): Worker<P> {
    return handler instanceof URL ? this.#workInPool(handler, options) : this.#workHere(handler, options);
  }

  #workHere(handler: Handler<P, R>, options: WorkOptions | undefined): Worker<P> {
    if (handler === undefined) throw new CroreError('BAD_OPTION', 'work needs a handler');
    if (typeof handler === 'string') refusePath(handler);
    checkFunction(handler, 'the handler');
    refuseProcessOptions(options);
    return this.#startWorker(resolveWorkOptions(options), { handler: traced(handler) });
  }

  #workInPool(url: URL, options: (WorkOptions & ProcessOptions) | undefined): Worker<P> {
    const [processOptions, workOptions] = resolveProcessOptions(options);
    const resolved = resolveWorkOptions(workOptions);
    const { maxPayload } = this.#context;
    const onError = resolved.onError ?? this.#context.onError;
    const pool = new HandlerPool({ module: checkModule(url), options: processOptions, maxPayload, onError });
    return this.#startWorker(resolved, {
      handler: traced((job) => pool.run(job as RunningJob<P>)),
      separate: processOptions.kind === 'process',
      close: () => pool.close(),
    });
  }

  #startWorker(resolved: ResolvedWorkOptions, handler: Omit<Prepare<P>, 'read' | 'check'>): Worker<P> {
    if (this.#context.isClosed())
      throw new CroreError('CLOSED', `queue '${this.name}': the connection has been closed`);
    const { engine, heartbeat, maxPayload } = this.#context;
    const worker = new Worker<P>({
      engine,
      heartbeat,
      queue: this.name,
      options: resolved,
      maxPayload,
      prepare: {
        ...handler,
        read: (entry) => readEntry(entry, resolved.tasks, this.#codec) as P,
        codec: this.#codec,
        check: this.#checker(),
      },
      onError: resolved.onError ?? this.#context.onError,
      onClosed: (closed) => this.#context.workers.delete(closed),
    });
    this.#context.workers.add(worker);
    return worker;
  }

  /** A handle to a job that was added by other code. */
  handle(id: string): Handle<T, R> {
    return new Handle(this.#engine, this.name, checkName(id, 'job id'), 'created', this.#codec, true);
  }

  async get(id: string): Promise<JobView<T, R> | undefined> {
    const [job] = await this.#engine.store.get(this.name, [id]);
    return job && viewOf(job, this.#codec);
  }

  /** Counts entries by state; raw tasks count as ready or active. */
  count(): Promise<Counts> {
    return this.#engine.store.count(this.name);
  }

  /**
   * Lists a page of jobs in one state, waiting ones in the order they will run, ended ones newest first. With a filter a page may
   * be short or empty and still have a cursor: follow it until there is none.
   */
  async list(state: State, options: ListPageOptions = {}): Promise<{ jobs: JobView<T, R>[]; cursor?: string }> {
    checkOneOf(state, 'state', STATES);
    checkOptions(options, ['limit', 'cursor', 'filter'], 'list');
    const limit = options.limit === undefined ? 100 : checkInteger(options.limit, 'limit', 1, 1_000);
    const filter = resolveFilter(options.filter ?? {}, [state], 'list');
    const asked = { limit, cursor: checkCursor(options.cursor) };
    const page = await listMatching(this.#engine, this.name, state, filter, asked);
    return { jobs: page.jobs.map((job) => viewOf<T, R>(job, this.#codec)), cursor: page.cursor };
  }

  workers(): Promise<WorkerInfo[]> {
    return this.#engine.store.workers(this.name);
  }

  /** Cancels a job that has not ended, running or not; returns false when there is nothing to cancel. */
  cancel(id: string, options?: Pick<BulkOptions, 'by'>): Promise<boolean>;
  /** Cancels all matching jobs in steps; returns how many. */
  cancel(filter: Filter, options?: BulkOptions): Promise<number>;
  async cancel(which: string | Filter, options: BulkOptions = {}): Promise<boolean | number> {
    checkOptions(options, BULK_KNOWN, 'cancel');
    const act = (ids: string[]) => this.#engine.store.cancel(this.name, ids, options.by);
    if (typeof which === 'string') return (await act([which]))[0]!;
    return this.#bulk(which, ['blocked', 'scheduled', 'ready', 'active'], 'cancel', act, options);
  }

  /**
   * Moves dead jobs (the given ones, the matching ones, or all) to the back of the queue with fresh attempts; returns how many.
   */
  async retryDead(which: string | readonly string[] | Filter = {}, options: BulkOptions = {}): Promise<number> {
    checkOptions(options, BULK_KNOWN, 'retryDead');
    const act = (ids: readonly string[]) => this.#engine.store.rerun(this.name, ids, ['dead'], options.by);
    if (typeof which === 'string' || Array.isArray(which)) {
      let revived = 0;
      for (const ids of chunks([which].flat() as string[], () => 0)) revived += (await act(ids)).filter(Boolean).length;
      return revived;
    }
    return this.#bulk(which as Filter, ['dead'], 'retryDead', act, options);
  }

  /**
   * Runs an ended job again, with fresh attempts; its result and error are gone. Returns false if there is no such job, or if it has
   * not ended.
   */
  async rerun(id: string, options: Pick<BulkOptions, 'by'> = {}): Promise<boolean> {
    checkOptions(options, ['by'], 'rerun');
    const { store } = this.#engine;
    const [applied] = await store.rerun(
      this.name,
      [checkName(id, 'job id')],
      ['done', 'dead', 'cancelled'],
      options.by,
    );
    return applied!;
  }

  /**
   * Changes a job that has not started: its payload, priority, or time. A new priority or time moves it to the back. Rejects with
   * JOB_STARTED if it has started or ended, and with NOT_FOUND if there is no such job.
   */
  async update(id: string, changes: UpdateOptions & { payload?: T }): Promise<void> {
    checkOptions(changes, ['payload', 'priority', 'delay', 'at'], 'update');
    const { payload, ...options } = changes;
    if (this.#schema && 'payload' in changes) await validate(this.#schema, payload, `payload for queue '${this.name}'`);
    const what = `payload for queue '${this.name}'`;
    const body = 'payload' in changes ? encodeValue(payload, what, this.#context.maxPayload, this.#codec) : undefined;
    const resolved = resolveChanges(body, options);
    const found = await this.#engine.store.update(this.name, checkName(id, 'job id'), resolved);
    if (found === undefined) throw new CroreError('NOT_FOUND', `there is no job '${id}' in queue '${this.name}'`);
    if (!isWaiting(found))
      throw new CroreError(
        'JOB_STARTED',
        `job '${id}' of queue '${this.name}' is ${found}: it can no longer be changed`,
      );
  }

  /** Makes a job that is scheduled, or waits for a retry, due now. Rejects as `update` does. */
  runNow(id: string): Promise<void> {
    return this.update(id, { delay: 0 });
  }

  /** Removes the record of an ended job; returns false when there is none. */
  remove(id: string): Promise<boolean>;
  /** Removes the records of all matching ended jobs in steps; returns how many. */
  remove(filter: Filter, options?: BulkOptions): Promise<number>;
  async remove(which: string | Filter, options: BulkOptions = {}): Promise<boolean | number> {
    const act = (ids: string[]) => this.#engine.store.remove(this.name, ids);
    if (typeof which === 'string') return (await act([which]))[0]!;
    return this.#bulk(which, ['done', 'dead', 'cancelled'], 'remove', act, options);
  }

  /**
   * Sets the limits of the queue across all workers: `concurrency` entries at once, `rate.count` starts per `rate.per`, and the
   * same for each group of jobs. What is left out is not limited; `{}` removes all limits.
   */
  async setLimits(limits: QueueLimitOptions): Promise<void> {
    await this.#engine.store.configure(this.name, { limits: resolveLimits(limits) });
  }

  limits(): Promise<QueueLimits> {
    return this.#engine.store.settings(this.name).then(({ limits }) => limits);
  }

  /** Stops delivering work to any worker; running jobs continue. */
  pause(): Promise<void> {
    return this.#engine.store.configure(this.name, { paused: true });
  }

  isPaused(): Promise<boolean> {
    return this.#engine.store.settings(this.name).then(({ paused }) => paused);
  }

  resume(): Promise<void> {
    return this.#engine.store.configure(this.name, { paused: false });
  }

  /**
   * Follows the events of this queue's jobs in every process, from now on or since a position. Resolves when events are being
   * recorded. Bounded: the newest ten thousand are kept, and a `gap` event marks where some are missing.
   */
  async events(options: EventOptions = {}): Promise<JobEvents> {
    const { workers } = this.#context;
    const events = await followEvents(this.#engine, this.name, options, () => workers.delete(closing));
    const closing = { close: async () => events.close() };
    workers.add(closing);
    return events;
  }

  /** Deletes everything in the queue, including what is running. */
  obliterate(): Promise<void> {
    return this.#engine.store.obliterate(this.name);
  }

  get #engine(): Engine {
    return this.#context.engine;
  }

  /** Synchronous if the schema is, so that a batch of adds does not cost a promise each. */
  #resolve(payload: T, options: AddOptions | undefined): NewJob | Promise<NewJob> {
    const checked = this.#schema ? validate(this.#schema, payload, `payload for queue '${this.name}'`) : undefined;
    return checked instanceof Promise
      ? checked.then(() => this.#encode(payload, options))
      : this.#encode(payload, options);
  }

  #resolveNow(payload: T, options: AddOptions | undefined): NewJob {
    const job = this.#resolve(payload, options);
    if (!(job instanceof Promise)) return job;
    job.catch(() => {}); // its result comes too late to matter
    const why = 'its schema is asynchronous, which a transaction does not allow';
    throw new CroreError('BAD_OPTION', `addIn: queue '${this.name}': ${why}`);
  }

  #addAllIn(connection: Connection, jobs: readonly NewJob[]): Handle<T, R>[] {
    if (this.#context.isClosed())
      throw new CroreError('CLOSED', `queue '${this.name}': the connection has been closed`);
    const outcomes = this.#engine.addIn(connection, this.name, jobs, this.#capacity);
    return outcomes.map((outcome, i) => this.#handle(jobs[i]!, outcome));
  }

  #encode(payload: T, options: AddOptions | undefined): NewJob {
    const what = `payload for queue '${this.name}'`;
    const body = encodeValue(payload, what, this.#context.maxPayload, this.#codec);
    return resolveJob(this.name, body, options, this.#engine.store.now());
  }

  #handle(job: NewJob, outcome: AddOutcome): Handle<T, R> {
    return new Handle(this.#engine, this.name, 'id' in outcome ? outcome.id : job.id, outcome.outcome, this.#codec);
  }

  #task(task: unknown): Bytes {
    const bytes = typeof task === 'string' ? Buffer.from(task) : task;
    if (!(bytes instanceof Uint8Array))
      throw new CroreError('BAD_PAYLOAD', `a task must be a string or bytes, not ${describe(task)}`);
    return encodeValue(bytes, `task for queue '${this.name}'`, this.#context.maxPayload, this.#codec) as Bytes;
  }

  #checker(): ((job: RunningJob<P>) => P | Promise<P>) | undefined {
    const schema = this.#schema;
    if (!schema) return undefined;
    return (job) => validate(schema, job.payload, `payload of ${describeEntry(job)}`) as P | Promise<P>;
  }

  async #bulk(
    filter: Filter,
    states: readonly State[],
    what: string,
    act: (ids: string[]) => Promise<boolean[]>,
    options: BulkOptions,
  ): Promise<number> {
    const resolved = resolveFilter(filter, states, what);
    checkOptions(options, BULK_KNOWN, what);
    checkFunction(options.progress, 'progress');
    return forEachMatching(this.#engine, this.name, resolved, act, options);
  }
}
