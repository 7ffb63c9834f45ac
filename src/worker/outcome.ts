import { encodeValue } from '../engine/payload.js';
import { settlementOf } from '../engine/raw-task.js';
import { isFatal } from '../errors.js';
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
}

const LONGEST_ERROR = 4_096;

/** The settlement after the handler returned. */
export function returned(job: RunningJob<unknown>, value: unknown, context: OutcomeContext): Settlement {
  if (job.released) return released(job, context);
  if (job.snoozed !== undefined) return settlement(job, snooze(job, job.snoozed), context);
  if (value === undefined) return settlement(job, finish(job), context);
  try {
    return settlement(job, finish(job, encodeValue(value, 'the result', context.maxPayload)), context);
  } catch (error) {
    // Running the job again would not produce a valid result.
    return settlement(job, die(job, messageOf(error)), context);
  }
}

/** The settlement after the handler threw. */
export function threw(job: RunningJob<unknown>, error: unknown, context: OutcomeContext): Settlement {
  if (job.released) return released(job, context);
  if (job.snoozed !== undefined) return settlement(job, snooze(job, job.snoozed), context);
  if (job.stopped) return settlement(job, release(job), context);
  const message = messageOf(error);
  if (isFatal(error)) return settlement(job, die(job, message), context);
  return settlement(
    job,
    fail(job, message, { random: context.random, delay: chosenDelay(job, error, context) }),
    context,
  );
}

export function released(job: RunningJob<unknown>, context: OutcomeContext): Settlement {
  return settlement(job, release(job), context);
}

export function overran(job: RunningJob<unknown>, context: OutcomeContext): Settlement {
  const message = `took longer than its reservation of ${job.spec.reservation} ms`;
  return settlement(
    job,
    fail(job, message, { random: context.random, delay: chosenDelay(job, undefined, context) }),
    context,
  );
}

export function expired(job: RunningJob<unknown>, context: OutcomeContext): Settlement {
  return settlement(job, expire(job), context);
}

function settlement(job: RunningJob<unknown>, outcome: Outcome, context: OutcomeContext): Settlement {
  const { lease, entry } = job;
  return settlementOf({ lease, job: entry.job && job, task: entry.task }, outcome, context.now);
}

function chosenDelay(job: RunningJob<unknown>, error: unknown, { options }: OutcomeContext): number | undefined {
  if (!options.backoff) return undefined;
  try {
    return milliseconds(options.backoff(job.attempt, error), 'backoff');
  } catch {
    return undefined; // falls back to the stored curve when the function fails
  }
}

function messageOf(error: unknown): string {
  let text: string;
  try {
    text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  } catch {
    text = 'something was thrown that cannot be shown'; // an object without a prototype, or a Symbol as message
  }
  return text.length > LONGEST_ERROR ? `${text.slice(0, LONGEST_ERROR)}…` : text;
}
