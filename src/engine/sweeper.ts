import type { Job } from '../job/job.js';
import { fail, lose, type Outcome, release } from '../job/transitions.js';
import { type LostEntry, SERVER_SESSION, type Settlement } from '../store/store.js';
import type { Engine } from './engine.js';
import type { SweepPolicy } from './maintenance.js';
import { CLAIMED_TASK, returnLease, taskRecord } from './raw-task.js';

/** Maximum rounds per sweep; what remains waits for the next sweep. */
const MAX_ROUNDS = 50;

/** Sweeps a queue and decides the outcome of the entries it finds. */
export async function sweepQueue(engine: Engine, queue: string, policy: SweepPolicy): Promise<void> {
  let every = Math.floor(policy.sweep / 2);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const { lost, more } = await engine.store.sweep(queue, { lease: policy.lease, every });
    if (lost.length > 0)
      await engine.store.settle(
        queue,
        lost.map((entry) => decide(engine, entry, policy)),
      );
    if (!more) return;
    every = 0;
  }
}

function decide(engine: Engine, entry: LostEntry, policy: SweepPolicy): Settlement {
  const { lease } = entry;
  if (entry.job) {
    const { job } = entry;
    return { lease, outcome: decideJob(engine, entry, job, policy), spec: job.spec, priority: job.priority };
  }
  if (entry.raw || lease.worker.startsWith(SERVER_SESSION)) return returnLease({ lease });
  // The crash has to be recorded, even when the task goes back to the queue.
  const record = taskRecord(entry.task, engine.store.now());
  const { spec, priority } = CLAIMED_TASK;
  return { lease, outcome: lose(CLAIMED_TASK, policy.maxCrashes, lease.worker), spec, priority, record };
}

function decideJob(engine: Engine, { lease, why }: LostEntry, job: Job, policy: SweepPolicy): Outcome {
  if (why === 'reservation') {
    return fail(job, `no report within its reservation of ${job.spec.reservation} ms`, { random: engine.random });
  }
  // The server died before it delivered this job, so no worker has failed.
  return lease.worker.startsWith(SERVER_SESSION) ? release(job) : lose(job, policy.maxCrashes, lease.worker);
}
