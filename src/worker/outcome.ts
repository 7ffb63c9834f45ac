import type { Codec } from '../engine/codec.js';
import { encodeValue } from '../engine/payload.js';
import { settlementOf } from '../engine/raw-task.js';
import { isCroreError, isFatal } from '../errors.js';
import { type AttemptError, describeError, errorLine, writeAttempt } from '../job/attempt.js';
import { milliseconds } from '../job/duration.js';
import { die, expire, fail, finish, type Outcome, release, snooze } from '../job/transitions.js';
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

/** The settlement after the handler returned. */
export function returned(job: RunningJob<unknown>, value: unknown, context: OutcomeContext): Settlement {
  if (job.released) return released(job, context);
  if (job.snoozed !== undefined) return settlement(job, snooze(job, job.snoozed), context);
  if (value === undefined) return settlement(job, finish(job), context);
  try {
    const result = encodeValue(value, 'the result', context.maxPayload, context.codec);
    return settlement(job, finish(job, result), context);
  } catch (error) {
    // Running the job again would not produce a valid result.
    const described = describeError(error);
    return settlement(job, die(job, errorLine(described)), context, described);
  }
}

/** The settlement after the handler threw. */
export function threw(job: RunningJob<unknown>, error: unknown, context: OutcomeContext): Settlement {
  if (job.released) return released(job, context);
  if (job.snoozed !== undefined) return settlement(job, snooze(job, job.snoozed), context);
  if (job.stopped && isBecauseOf(error, job.stopped)) return settlement(job, release(job), context);
  const described = describeError(error);
  const message = errorLine(described);
  if (isFatal(error)) return settlement(job, die(job, message), context, described);
  const delay = chosenDelay(job, error, context);
  return settlement(job, fail(job, message, { random: context.random, now: context.now(), delay }), context, described);
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
): Settlement {
  const { lease, entry } = job;
  const settled = settlementOf({ lease, job: entry.job && job, task: entry.task }, outcome, () => job.id);
  if (!error) return settled;
  const endedAt = context.now();
  const startedAt = Math.round(endedAt - (performance.now() - job.began));
  const attempt = writeAttempt({
    attempt: job.attempt,
    outcome: 'failed',
    startedAt,
    endedAt,
    worker: lease.worker,
    error,
  });
  return { ...settled, attempt };
}

function chosenDelay(job: RunningJob<unknown>, error: unknown, { options }: OutcomeContext): number | undefined {
  if (!options.backoff) return undefined;
  try {
    return milliseconds(options.backoff(job.attempt, error), 'backoff');
  } catch {
    return undefined; // falls back to the stored curve when the function fails
  }
}
