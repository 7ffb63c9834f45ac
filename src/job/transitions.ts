import { backoffDelay } from './backoff.js';
import type { ChildList } from './children.js';
import type { Backoff, Body, Job, Spec } from './job.js';

/** What a store does to a leased entry if its token still matches. Counts are the new values. */
export type Outcome = { attempt: number; crashes: number } & (
  | { to: 'done'; result?: Body }
  /** `answered`: a report was accepted; later ones about this delivery are ignored. */
  | { to: 'scheduled'; delay: number; error?: string; answered?: boolean }
  | { to: 'ready'; error?: string }
  /** It waits for its children, and runs again when they have ended. */
  | { to: 'blocked'; list: ChildList }
  | { to: 'dead'; error: string }
  | { to: 'cancelled'; error: string }
);

/** The counts and options of a job: all that a decision needs. */
export type Counted = Pick<Job, 'attempt' | 'crashes'> & {
  spec: Pick<Spec, 'attempts' | 'backoff' | 'retryFor'>;
  /** Absent for a raw task. */
  createdAt?: number;
};

export function finish(job: Counted, result?: Body): Outcome {
  return { to: 'done', attempt: job.attempt, crashes: job.crashes, result };
}

export interface FailOptions {
  random: () => number;
  now: number;
  /** Milliseconds chosen by the worker's own function, instead of the stored backoff. */
  delay?: number;
}

/** A failed attempt: retry later, or dead if this was the last one, or if the next one would come too late. */
export function fail(job: Counted, error: string, { random, delay, now }: FailOptions): Outcome {
  const counts = { attempt: job.attempt, crashes: job.crashes, error };
  if (job.attempt >= job.spec.attempts) return { to: 'dead', ...counts };
  const wait = delay ?? waitAfter(job.spec.backoff, job.attempt, random);
  return isTooLate(job, now + wait) ? { to: 'dead', ...counts } : { to: 'scheduled', delay: wait, ...counts };
}

function isTooLate({ createdAt, spec: { retryFor } }: Counted, next: number): boolean {
  return retryFor !== undefined && createdAt !== undefined && next > createdAt + retryFor;
}

function waitAfter(backoff: Backoff, attempt: number, random: () => number): number {
  return backoffDelay(backoff, Math.max(1, attempt), random);
}

/** The handler gave up on the job. */
export function die(job: Counted, error: string): Outcome {
  return { to: 'dead', attempt: job.attempt, crashes: job.crashes, error };
}

/** Retry later, as the handler requested: the attempt is not charged. */
export function snooze(job: Counted, delay: number): Outcome {
  return { to: 'scheduled', delay, attempt: uncharged(job), crashes: job.crashes };
}

/** Waits for its children, as the handler requested: the attempt is not charged. */
export function park(job: Counted, list: ChildList): Outcome {
  return { to: 'blocked', list, attempt: uncharged(job), crashes: job.crashes };
}

/** Returns the entry to the front as if it had never been claimed. */
export function release(job: Counted): Outcome {
  return { to: 'ready', attempt: uncharged(job), crashes: job.crashes };
}

/** The worker died: one more crash, no attempt charged; dead once it has killed `maxCrashes` workers. */
export function lose(job: Counted, maxCrashes: number, worker: string): Outcome {
  return crash(job, maxCrashes, `worker ${worker} was lost`);
}

/** The same, for whatever died with the job in hand. */
export function crash(job: Counted, maxCrashes: number, why: string): Outcome {
  const crashes = job.crashes + 1;
  const counts = { attempt: uncharged(job), crashes, error: `${why} (crash ${crashes})` };
  return crashes >= maxCrashes ? { to: 'dead', ...counts } : { to: 'ready', ...counts };
}

/** Claimed after its expiry: the job ends without having run. */
export function expire(job: Counted): Outcome {
  return { to: 'cancelled', attempt: uncharged(job), crashes: job.crashes, error: 'expired before it could start' };
}

function uncharged(job: Counted): number {
  return Math.max(0, job.attempt - 1);
}

/** Why a blocked job ends without running, or without running again. */
export function skipReason(parked: boolean, up: { id: string; state: 'dead' | 'cancelled' | 'done' }): string {
  return `${parked ? 'a child' : 'an upstream job'} ended ${up.state}: ${up.id}`;
}
