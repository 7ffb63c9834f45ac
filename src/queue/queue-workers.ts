import { describe } from '../engine/input/check.js';
import { validate } from '../engine/input/payload.js';
import { CroreError } from '../errors.js';
import { HandlerPool } from '../pool/handlers/handler-pool.js';
import {
  checkModule,
  type ProcessOptions,
  refusePath,
  refuseProcessOptions,
  resolveProcessOptions,
} from '../pool/options.js';
import type { BatchJob } from '../worker/handlers/batch-job.js';
import { type BatchSetup, resolveBatchOptions, type WorkBatchOptions } from '../worker/handlers/batch-options.js';
import type { Prepare } from '../worker/handlers/handler-call.js';
import { checkFunction, type ResolvedWorkOptions, resolveWorkOptions, type WorkOptions } from '../worker/options.js';
import { type ActiveJob, describeEntry, type RunningJob, type Settled } from '../worker/running.js';
import { type BatchWorker, Worker } from '../worker/worker.js';
import { type QueueSetup, readEntry, refuseClosed } from './queue-input.js';
import { StoredRelatives } from './stored-relatives.js';
import { isTracing, traced, tracedBatch } from './tracing.js';

/** Starting workers of a queue: what `Queue.work` and `Queue.workBatch` do. */

/** Returns the result, or what `job.snooze()` or `job.release()` returned. */
export type Handler<P, R> = (job: ActiveJob<P>) => R | Settled | Promise<R | Settled>;

/** What becomes of one job of a batch: its result, an error, or what `job.snooze()` and the like returned. */
type BatchResult<R> = R | Error | Settled;
type BatchResults<R> =
  | readonly (BatchResult<R> | PromiseLike<BatchResult<R>>)[]
  // biome-ignore lint/suspicious/noConfusingVoidType: a handler without a return statement
  | (undefined extends R ? void : never);
/**
 * Gets the jobs of a batch. Returns an array with the result of each job in order, or an `Error` if it failed, or a promise of that; or
 * nothing, if no job has a result. Jobs that were settled with their own methods keep that. If it throws, all others fail.
 */
export type BatchHandler<P, R> = (jobs: BatchJob<P, R>[]) => BatchResults<R> | Promise<BatchResults<R>>;

export function workHere<P, R>(queue: QueueSetup, handler: Handler<P, R>, options: WorkOptions | undefined): Worker<P> {
  if (handler === undefined) throw new CroreError('BAD_OPTION', 'work needs a handler');
  if (typeof handler === 'string') refusePath(handler);
  checkFunction(handler, 'the handler');
  refuseProcessOptions(options);
  return startWorker(queue, resolveWorkOptions(options), { handler: traced(handler) });
}

export function workInPool<P>(
  queue: QueueSetup,
  url: URL,
  options: (WorkOptions & ProcessOptions) | undefined,
): Worker<P> {
  const [processOptions, workOptions] = resolveProcessOptions(options);
  const resolved = resolveWorkOptions(workOptions);
  const { maxPayload } = queue;
  const onError = resolved.onError ?? queue.onError;
  const { concurrency } = resolved;
  const module = checkModule(url);
  const pool = new HandlerPool({ module, size: concurrency, options: processOptions, maxPayload, onError });
  return startWorker(queue, resolved, {
    handler: traced((job: ActiveJob<P>) => pool.run(job as RunningJob<P>)),
    // A span begins when a job is given to the handler, so that must not be before the job can start.
    capacity: () => (isTracing() ? concurrency : pool.capacity),
    separate: processOptions.kind === 'process',
    close: () => pool.close(),
  });
}

export function workBatch<P, R>(
  queue: QueueSetup,
  handler: BatchHandler<P, R>,
  options: WorkBatchOptions | undefined,
): BatchWorker<P, R> {
  if (typeof handler !== 'function')
    throw new CroreError('BAD_OPTION', `workBatch needs a function as handler, not ${describe(handler)}`);
  const [batches, workOptions] = resolveBatchOptions(options);
  const called = tracedBatch(handler as (jobs: BatchJob<P>[]) => unknown);
  const batch: BatchSetup<P> = { ...batches, handler: called };
  return startWorker(queue, resolveWorkOptions(workOptions), { handler: notUsed, batch });
}

function notUsed(): never {
  throw new Error('this worker takes batches');
}

function startWorker<P, C>(
  queue: QueueSetup,
  resolved: ResolvedWorkOptions,
  handler: Omit<Prepare<P>, 'read' | 'check'>,
): Worker<P, C> {
  refuseClosed(queue);
  const { engine, heartbeat, maxPayload, codec, workers } = queue;
  const worker = new Worker<P, C>({
    engine,
    heartbeat,
    queue: queue.name,
    options: resolved,
    maxPayload,
    prepare: {
      ...handler,
      read: (entry) => readEntry(entry, resolved.tasks, codec) as P,
      codec,
      check: checker(queue),
      relatives: new StoredRelatives(queue),
    },
    onError: resolved.onError ?? queue.onError,
    onClosed: (closed) => workers.delete(closed),
  });
  workers.add(worker);
  return worker;
}

/** Validates the payload of a job with the queue's schema, if it has one. */
function checker<P>({ schema }: QueueSetup): ((job: RunningJob<P>) => P | Promise<P>) | undefined {
  if (!schema) return undefined;
  return (job) => validate(schema, job.payload, `payload of ${describeEntry(job)}`) as P | Promise<P>;
}
