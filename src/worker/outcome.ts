import { type Codec, encodeWith } from '../engine/input/codec.js';
import { checkSize, encodeValue } from '../engine/input/payload.js';
import { settlementOf, taskRecord } from '../engine/raw-task.js';
import { isCroreError, isFatal } from '../errors.js';
import { type Attempt, type AttemptError, describeError, errorLine, writeAttempt } from '../job/attempt.js';
import { milliseconds } from '../job/duration.js';
import type { Body } from '../job/job.js';
import { crash, die, expire, fail, finish, type Outcome, park, release, snooze } from '../job/transitions.js';
import type { Settlement } from '../store/store.js';
import type { ResolvedWorkOptions } from './options.js';
import type { RunningJob } from './running.js';

/** What the decisions need besides the job itself. */
export interface OutcomeContext {
  options: ResolvedWorkOptions;
  random: () => number;
  now: () => number;
  maxPayload: number;
  codec: Codec | undefined;
}

/** A result that the process of the handler has encoded, or why it could not be encoded. */
export class EncodedResult {
  constructor(private readonly encoded: Body | Error) {}

  get body(): Body {
    if (this.encoded instanceof Error) throw this.encoded;
    return this.encoded;
  }
}

/** The process or thread that ran the handler died: `stderr` has the last lines it wrote there. */
export class HandlerCrash extends Error {
  constructor(
    message: string,
    readonly stderr: string | undefined,
  ) {
    super(message);
  }
}

/** The settlement after the handler returned. */
export function returned(job: RunningJob<unknown>, value: unknown, context: OutcomeContext): Settlement {
  if (job.released) return released(job, context);
  if (job.snoozed !== undefined) return settlement(job, snooze(job, job.snoozed), context);
  if (job.awaited) return settlement(job, park(job, job.awaited), context);
  if (value === undefined) return settlement(job, finish(job), context);
  try {
    return settlement(job, finish(job, encode(value, context)), context);
  } catch (error) {
    // Running the job again would not produce a valid result.
    const described = describeError(error);
    return settlement(job, die(job, errorLine(described)), context, described);
  }
}

function encode(value: unknown, { maxPayload, codec }: OutcomeContext): Body {
  if (!(value instanceof EncodedResult)) return encodeValue(value, 'the result', maxPayload, codec);
  if (!codec) return value.body;
  const body = encodeWith(codec, value.body, 'the result');
  checkSize(body, 'the result', maxPayload);
  return body;
}

/** The settlement after the handler threw. */
export function threw(job: RunningJob<unknown>, error: unknown, context: OutcomeContext): Settlement {
  if (job.released) return released(job, context);
  if (job.snoozed !== undefined) return settlement(job, snooze(job, job.snoozed), context);
  if (job.stopped && isBecauseOf(error, job.stopped)) return settlement(job, release(job), context);
  if (isCrash(error)) return crashed(job, error, context);
  const described = describeError(error);
  const message = errorLine(described);
  if (isFatal(error)) return settlement(job, die(job, message), context, described);
  const delay = chosenDelay(job, error, context);
  return settlement(job, fail(job, message, { random: context.random, now: context.now(), delay }), context, described);
}

/** Never throws: a Proxy may. */
function isCrash(error: unknown): error is HandlerCrash {
  try {
    return error instanceof HandlerCrash;
  } catch {
    return false;
  }
}

/** As a sweep does with the jobs of a lost worker, but at once. */
function crashed(job: RunningJob<unknown>, { message, stderr }: HandlerCrash, context: OutcomeContext): Settlement {
  const outcome = crash(job, context.options.maxCrashes, message);
  const error = { name: 'WORKER_LOST', message, ...(stderr === undefined ? {} : { stderr }) };
  const settled = settlement(job, outcome, context, error, 'crashed');
  const { task } = job.entry;
  // The crash has to be recorded, even when the task goes back to the queue.
  return task ? { ...settled, record: taskRecord(task, job.id) } : settled;
}

export function released(job: RunningJob<unknown>, context: OutcomeContext): Settlement {
  return settlement(job, release(job), context);
}

export function overran(job: RunningJob<unknown>, context: OutcomeContext): Settlement {
  const message = `took longer than its reservation of ${job.spec.reservation} ms`;
  const delay = chosenDelay(job, undefined, context);
  const described = { name: 'TIMEOUT', message };
  return settlement(job, fail(job, message, { random: context.random, now: context.now(), delay }), context, described);
}

export function expired(job: RunningJob<unknown>, context: OutcomeContext): Settlement {
  return settlement(job, expire(job), context);
}

/**
 * Whether a handler that was asked to stop did so. After a shutdown has begun, an error of another kind is a failure like any other;
 * if the lease is in doubt, nothing that is thrown counts.
 */
function isBecauseOf(error: unknown, reason: Error): boolean {
  if (!isCroreError(reason) || reason.code !== 'CLOSED') return true;
  try {
    const { name, cause } = error as { name?: unknown; cause?: unknown };
    return error === reason || cause === reason || name === 'AbortError';
  } catch {
    return false; // a Proxy, or null
  }
}

/** With an error, the attempt becomes part of the job's history. */
function settlement(
  job: RunningJob<unknown>,
  outcome: Outcome,
  context: OutcomeContext,
  error?: AttemptError,
  how: Attempt['outcome'] = 'failed',
): Settlement {
  const { lease, entry } = job;
  const settled = settlementOf({ lease, job: entry.job && job, task: entry.task }, outcome, () => job.id);
  if (!error) return settled;
  const startedAt = startOf(job, context);
  const endedAt = Math.max(context.now(), startedAt);
  const attempt = writeAttempt({
    attempt: job.attempt,
    outcome: how,
    startedAt,
    endedAt,
    worker: lease.worker,
    error,
  });
  return { ...settled, attempt };
}

/**
 * When the handler was called, by the clock of the store: its time of the claim, and what has passed since. The clock of this process may be set meanwhile, and
 * what the job wrote down has the time of the store, too.
 */
function startOf({ entry, arrived, began }: RunningJob<unknown>, context: OutcomeContext): number {
  const claimedAt = entry.job?.startedAt;
  if (claimedAt === undefined) return Math.round(context.now() - (performance.now() - began));
  return claimedAt + Math.floor(began - arrived);
}

function chosenDelay(job: RunningJob<unknown>, error: unknown, { options }: OutcomeContext): number | undefined {
  if (!options.backoff) return undefined;
  try {
    return milliseconds(options.backoff(job.attempt, error), 'backoff');
  } catch {
    return undefined; // falls back to the stored curve when the function fails
  }
}
