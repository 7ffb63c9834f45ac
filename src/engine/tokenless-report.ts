import type { Job } from '../job/job.js';
import { type Counted, fail } from '../job/transitions.js';
import type { Settlement } from '../store/store.js';
import type { Engine } from './engine.js';

/** What somebody says about a job without holding a token. */
export interface TokenlessReport {
  id: string;
  ok: boolean;
}

export const REPORTED = 'a worker reported that it failed';
/** How often a failure is applied anew when the job was delivered again meanwhile. */
const TRIES = 3;

/**
 * Reports without a token, first come first served: success ends an active job or one that waits for its retry unanswered;
 * failure acts on an active one only. True where the report counted.
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
      jobs.map((job) => failure(job, engine.random)),
    );
    jobs.forEach((job, i) => void (applied[i] && failed.add(job.id)));
    left = jobs.filter((_job, i) => !applied[i]).map(({ id }) => id);
  }
  return failed;
}

/** Without a reservation a job is done once it is sent: nobody can fail it. */
function mayFail(job: Job | undefined): boolean {
  return job?.state === 'active' && job.spec.reservation > 0;
}

/** The move of a job in hand whose failure was reported. */
export function failure(
  job: Counted & Pick<Job, 'worker' | 'token' | 'id' | 'priority' | 'spec'>,
  random: () => number,
): Settlement {
  const lease = { worker: job.worker!, token: job.token!, id: job.id };
  const move = fail(job, REPORTED, { random });
  return {
    lease,
    move: move.to === 'scheduled' ? { ...move, answered: true } : move,
    spec: job.spec,
    priority: job.priority,
  };
}
