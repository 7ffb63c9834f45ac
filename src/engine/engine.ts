import { CroreError } from '../errors.js';
import type { Bytes, NewJob } from '../job/job.js';
import type { AddOutcome, Capacity, Store } from '../store/store.js';
import { MAX_BATCH } from '../store/store.js';
import { Batcher } from './batcher.js';
import { CompletionWatch } from './completion-watch.js';
import { ActivityRecorder } from './history/activity-recorder.js';
import { BreakerLog } from './logging/breaker-log.js';
import { DropWarnings } from './logging/drop-warnings.js';
import { FailureLog, type Logger } from './logging/failure-log.js';
import { Maintenance } from './maintenance.js';
import { Metrics } from './metrics/metrics.js';
import { observedStore } from './metrics/observed-store.js';
import { ScheduleRunner } from './schedules/schedule-runner.js';

/** A batch that reaches this many bytes is sent early. */
const MAX_BYTES = 4 * 1024 * 1024;
/** How many queues keep a cached batcher. */
const MAX_QUEUES = 10_000;

export interface EngineOptions {
  random?: () => number;
  /** Called for background errors that cannot be reported to any caller. */
  onError?: (error: Error, what: string) => void;
  /** Gets failed attempts and dead jobs. */
  logger?: Logger;
}

/** Makes the decisions and batches the calls; every operation on jobs goes through the engine to the store. */
export class Engine {
  readonly maintenance: Maintenance;
  readonly completions: CompletionWatch;
  readonly scheduleRunner: ScheduleRunner;
  readonly dropWarnings: DropWarnings;
  readonly failures: FailureLog;
  readonly random: () => number;
  readonly onError: (error: Error, what: string) => void;
  readonly #adds = new Map<string, Batcher<NewJob, AddOutcome>>();
  readonly #pushes = new Map<string, Batcher<Bytes, boolean>>();

  readonly metrics: Metrics;
  readonly store: Store;
  readonly #activity: ActivityRecorder | undefined;

  constructor(store: Store, options: EngineOptions = {}) {
    this.#activity = store.history && new ActivityRecorder(store.history);
    this.metrics = new Metrics(this.#activity);
    this.store = observedStore(store, this.metrics, new BreakerLog(options.logger));
    this.random = options.random ?? Math.random;
    this.onError = options.onError ?? (() => {});
    this.maintenance = new Maintenance(this);
    this.completions = new CompletionWatch(this);
    this.scheduleRunner = new ScheduleRunner(this);
    this.dropWarnings = new DropWarnings(this.onError);
    this.failures = new FailureLog(options.logger);
  }

  add(queue: string, job: NewJob, limits: Capacity): Promise<AddOutcome> {
    // A job may be refused because of the jobs it belongs with; that must not fail the other jobs of a call.
    if (job.spec.needs || job.spec.batch) return this.store.add(queue, [job], limits).then(([outcome]) => outcome!);
    const key = batchKey(queue, limits);
    let batcher = this.#adds.get(key);
    if (!batcher) {
      batcher = new Batcher(
        (jobs) => this.store.add(queue, jobs, limits),
        { items: MAX_BATCH, bytes: MAX_BYTES, parallel: this.store.maxParallelClaims },
        sizeOf,
      );
      remember(this.#adds, key, batcher);
    }
    return batcher.add(job);
  }

  async addMany(queue: string, jobs: readonly NewJob[], limits: Capacity): Promise<AddOutcome[]> {
    const results: AddOutcome[][] = [];
    for (const chunk of chunks(jobs, sizeOf)) results.push(await this.store.add(queue, chunk, limits));
    return results.flat();
  }

  /** Adds jobs inside the caller's transaction, through the caller's own connection. */
  addIn(connection: unknown, queue: string, jobs: readonly NewJob[], limits: Capacity): AddOutcome[] {
    if (!this.store.addIn) {
      throw new CroreError(
        'STORE_UNSUPPORTED',
        `addIn: queue '${queue}' is neither in a SQLite file nor on PostgreSQL, so it cannot share a transaction; use an outbox`,
      );
    }
    return this.store.addIn(connection, queue, jobs, limits);
  }

  push(queue: string, task: Bytes, limits: Capacity): Promise<boolean> {
    const key = batchKey(queue, limits);
    let batcher = this.#pushes.get(key);
    if (!batcher) {
      batcher = new Batcher(
        (tasks) => this.#pushAll(queue, tasks, limits),
        { items: MAX_BATCH, bytes: MAX_BYTES, parallel: this.store.maxParallelClaims },
        bytesOf,
      );
      remember(this.#pushes, key, batcher);
    }
    return batcher.add(task);
  }

  /** Pushes chunk by chunk, in order, until the queue is full; returns how many tasks were accepted. */
  async pushMany(queue: string, tasks: readonly Bytes[], limits: Capacity): Promise<number> {
    let accepted = 0;
    for (const chunk of chunks(tasks, bytesOf)) {
      if (!(await this.store.push(queue, chunk, limits))) break;
      accepted += chunk.length;
    }
    return accepted;
  }

  async close(): Promise<void> {
    this.maintenance.close();
    this.failures.close();
    this.completions.close();
    this.scheduleRunner.close();
    await this.#activity?.close();
    await this.store.close();
  }

  /** Sends independent pushes as one batch; if the whole batch does not fit, tries each push separately. */
  async #pushAll(queue: string, tasks: Bytes[], limits: Capacity): Promise<boolean[]> {
    if (await this.store.push(queue, tasks, limits)) return tasks.map(() => true);
    if (tasks.length === 1) return [false];
    const results: boolean[] = [];
    for (const task of tasks) results.push(await this.store.push(queue, [task], limits));
    return results;
  }
}

/** A batcher that is evicted still sends what it holds. */
function remember<T>(batchers: Map<string, T>, key: string, batcher: T): void {
  if (batchers.size >= MAX_QUEUES) batchers.clear();
  batchers.set(key, batcher);
}

function batchKey(queue: string, { count, bytes }: Capacity): string {
  return count === undefined && bytes === undefined ? queue : `${queue}\0${count ?? ''}\0${bytes ?? ''}`;
}

function sizeOf(job: NewJob): number {
  return job.payload.length;
}

function bytesOf(task: Bytes): number {
  return task.length;
}

/** Splits items into chunks that a store accepts in one atomic call. */
export function* chunks<T>(items: readonly T[], size: (item: T) => number): Generator<T[]> {
  let chunk: T[] = [];
  let bytes = 0;
  for (const item of items) {
    chunk.push(item);
    bytes += size(item);
    if (chunk.length < MAX_BATCH && bytes < MAX_BYTES) continue;
    yield chunk;
    chunk = [];
    bytes = 0;
  }
  if (chunk.length > 0) yield chunk;
}
