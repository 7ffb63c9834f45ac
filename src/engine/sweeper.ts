import { writeAttempt } from '../job/attempt.js';
import { newId } from '../job/id.js';
import type { Job } from '../job/job.js';
import { fail, lose, type Outcome, release } from '../job/transitions.js';
import { type LostEntry, SERVER_SESSION, type Settlement } from '../store/store.js';
import type { Engine } from './engine.js';
import type { SweepPolicy } from './maintenance.js';
import { CLAIMED_TASK, returnLease, taskRecord } from './raw-task.js';

/** Maximum rounds per sweep; what remains waits for the next sweep. */
const MAX_ROUNDS = 50;

/**
 * Sweeps a queue and decides the outcome of the entries it finds. Returns for how many milliseconds the queue needs no sweep unless a signal comes
 * first.
 */
export async function sweepQueue(engine: Engine, queue: string, policy: SweepPolicy): Promise<number> {
  let every = Math.floor(policy.sweep / 2);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const { lost, more, droppedDead, quietFor } = await engine.store.sweep(queue, { lease: policy.lease, every });
    if (droppedDead !== undefined) engine.dropWarnings.see(queue, droppedDead);
    if (lost.length > 0)
      await engine.store.settle(
        queue,
        lost.map((entry) => decide(engine, entry, policy)),
      );
    if (!more) return quietFor ?? 0;
    every = 0;
  }
  return 0;
}

function decide(engine: Engine, entry: LostEntry, policy: SweepPolicy): Settlement {
  const { lease } = entry;
  if (entry.job) {
    const { job } = entry;
    const outcome = decideJob(engine, entry, job, policy);
    const settlement = { lease, outcome, spec: job.spec, priority: job.priority };
    if (!('error' in outcome) || outcome.error === undefined) return settlement;
    const lost = { ...settlement, attempt: lostAttempt(engine, entry, job, outcome.error) };
    engine.failures.settled(job.queue, job, lost);
    return lost;
  }
  if (entry.raw || lease.worker.startsWith(SERVER_SESSION)) return returnLease({ lease });
  // The crash has to be recorded, even when the task goes back to the queue.
  const record = taskRecord(entry.task, newId(engine.store.now()));
  const { spec, priority } = CLAIMED_TASK;
  const outcome = lose(CLAIMED_TASK, policy.maxCrashes, lease.worker);
  const error = { name: 'WORKER_LOST', message: `worker ${lease.worker} was lost` };
  const attempt = { attempt: 1, outcome: 'crashed' as const, endedAt: engine.store.now(), worker: lease.worker, error };
  return { lease, outcome, spec, priority, record, attempt: writeAttempt(attempt) };
}

function lostAttempt(engine: Engine, { lease, why }: LostEntry, job: Job, message: string): string {
  return writeAttempt({
    attempt: job.attempt,
    outcome: why === 'worker' ? 'crashed' : 'failed',
    ...(job.startedAt === undefined ? {} : { startedAt: job.startedAt }),
    endedAt: engine.store.now(),
    worker: lease.worker,
    error: { name: why === 'worker' ? 'WORKER_LOST' : 'TIMEOUT', message },
  });
}

function decideJob(engine: Engine, { lease, why }: LostEntry, job: Job, policy: SweepPolicy): Outcome {
  if (why === 'reservation') {
    return fail(job, `no report within its reservation of ${job.spec.reservation} ms`, {
      random: engine.random,
      now: engine.store.now(),
    });
  }
  // The server died before it delivered this job, so no worker has failed.
  return lease.worker.startsWith(SERVER_SESSION) ? release(job) : lose(job, policy.maxCrashes, lease.worker);
}
