import { backoffDelay } from './backoff.js';
import type { Backoff, Body, Job, Spec } from './job.js';

/** What a store does to a leased entry when its token still matches. Counts are the new ones. */
export type Outcome = { attempt: number; crashes: number } & (
  | { to: 'done'; result?: Body }
  /** `answered`: a report was accepted, later ones about this delivery are ignored. */
  | { to: 'scheduled'; delay: number; error?: string; answered?: boolean }
  | { to: 'ready'; error?: string }
  | { to: 'dead'; error: string }
  | { to: 'cancelled'; error: string }
);

/** The counts and the request of a job: all that a decision needs. */
export type Counted = Pick<Job, 'attempt' | 'crashes'> & { spec: Pick<Spec, 'attempts' | 'backoff'> };

export function finish(job: Counted, result?: Body): Outcome {
  return { to: 'done', attempt: job.attempt, crashes: job.crashes, result };
}

export interface FailOptions {
  random: () => number;
  /** Milliseconds chosen by a worker's own function, in place of the stored curve. */
  delay?: number;
}

/** A failed attempt: try again later, or dead when this was the last. */
export function fail(job: Counted, error: string, { random, delay }: FailOptions): Outcome {
  const counts = { attempt: job.attempt, crashes: job.crashes, error };
  if (job.attempt >= job.spec.attempts) return { to: 'dead', ...counts };
  return { to: 'scheduled', delay: delay ?? waitAfter(job.spec.backoff, job.attempt, random), ...counts };
}

function waitAfter(backoff: Backoff, attempt: number, random: () => number): number {
  return backoffDelay(backoff, Math.max(1, attempt), random);
}

/** The handler said there is no hope. */
export function die(job: Counted, error: string): Outcome {
  return { to: 'dead', attempt: job.attempt, crashes: job.crashes, error };
}

/** Later, at the handler's own wish: the attempt is given back. */
export function snooze(job: Counted, delay: number): Outcome {
  return { to: 'scheduled', delay, attempt: uncharged(job), crashes: job.crashes };
}

/** Back to the front as if it had never been claimed. */
export function release(job: Counted): Outcome {
  return { to: 'ready', attempt: uncharged(job), crashes: job.crashes };
}

/** The worker died: one more crash, no attempt charged; dead when it has killed `maxCrashes` workers. */
export function lose(job: Counted, maxCrashes: number, worker: string): Outcome {
  const crashes = job.crashes + 1;
  const counts = { attempt: uncharged(job), crashes, error: `worker ${worker} was lost (crash ${crashes})` };
  return crashes >= maxCrashes ? { to: 'dead', ...counts } : { to: 'ready', ...counts };
}

/** Claimed after its expiry: it ends without having run. */
export function expire(job: Counted): Outcome {
  return { to: 'cancelled', attempt: uncharged(job), crashes: job.crashes, error: 'expired before it could start' };
}

function uncharged(job: Counted): number {
  return Math.max(0, job.attempt - 1);
}
