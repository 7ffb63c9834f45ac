import { writeAttempt } from '../job/attempt.js';
import type { Job } from '../job/job.js';
import { type Counted, fail } from '../job/transitions.js';
import type { Settlement } from '../store/store.js';
import type { Engine } from './engine.js';

/** A report about a job that carries no token. */
export interface TokenlessReport {
  id: string;
  ok: boolean;
}

export const REPORTED = 'a worker reported that it failed';
/** How often to reapply a failure when the job was delivered again in the meantime. */
const TRIES = 3;

/**
 * Applies reports without a token; the first one wins. A success ends an active job, or one that waits for its retry without
 * having been answered; a failure only affects an active job. Returns true for each report that counted.
 */
export async function report(engine: Engine, queue: string, reports: readonly TokenlessReport[]): Promise<boolean[]> {
  const good = reports.filter(({ ok }) => ok).map(({ id }) => id);
  const bad = [...new Set(reports.filter(({ ok }) => !ok).map(({ id }) => id))];
  const done = good.length > 0 ? await engine.store.reportSuccess(queue, good) : [];
  const failed = await failAll(engine, queue, bad);
  let next = 0;
  return reports.map(({ id, ok }) => (ok ? done[next++]! : failed.delete(id)));
}

async function failAll(engine: Engine, queue: string, ids: readonly string[]): Promise<Set<string>> {
  const failed = new Set<string>();
  let left = ids;
  for (let attempt = 0; attempt < TRIES && left.length > 0; attempt++) {
    const jobs = (await engine.store.get(queue, left)).filter((job): job is Job => mayFail(job));
    if (jobs.length === 0) break;
    const applied = await engine.store.settle(
      queue,
      jobs.map((job) => failure(job, engine.random, engine.store.now())),
    );
    jobs.forEach((job, i) => void (applied[i] && failed.add(job.id)));
    left = jobs.filter((_job, i) => !applied[i]).map(({ id }) => id);
  }
  return failed;
}

/** A job without a reservation is done once it is sent, so it cannot fail. */
function mayFail(job: Job | undefined): boolean {
  return job?.state === 'active' && job.spec.reservation > 0;
}

/** The settlement of an active job whose failure was reported. */
export function failure(
  job: Counted & Pick<Job, 'worker' | 'token' | 'id' | 'priority' | 'spec' | 'startedAt'>,
  random: () => number,
  now: number,
): Settlement {
  const lease = { worker: job.worker!, token: job.token!, id: job.id };
  const move = fail(job, REPORTED, { random, now });
  const { attempt, startedAt, worker } = job;
  const error = { name: '', message: REPORTED };
  return {
    attempt: writeAttempt({ attempt, outcome: 'failed', startedAt, endedAt: now, worker, error }),
    lease,
    outcome: move.to === 'scheduled' ? { ...move, answered: true } : move,
    spec: job.spec,
    priority: job.priority,
  };
}
