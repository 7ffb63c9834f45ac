import { newId } from '../job/id.js';
import type { Bytes, Job, Lease, NewJob } from '../job/job.js';
import { DEFAULT_SPEC } from '../job/spec.js';
import { type Counted, fail, lose, type Outcome, release } from '../job/transitions.js';
import { type LostEntry, SERVER_SESSION, type Settlement } from '../store/store.js';
import type { Engine } from './engine.js';
import type { SweepPolicy } from './maintenance.js';

/** Rounds of one sweep: what is left waits for the next. */
const MAX_ROUNDS = 50;

/** Sweeps a queue and decides what becomes of what it finds. */
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
    return { lease, move: decideJob(engine, entry, job, policy), spec: job.spec, priority: job.priority };
  }
  if (entry.raw || lease.worker.startsWith(SERVER_SESSION)) return returnedTask(lease);
  const record = taskRecord(entry.task, engine.store.now());
  return {
    lease,
    move: lose(counted(record), policy.maxCrashes, lease.worker),
    spec: record.spec,
    priority: 0,
    record,
  };
}

function decideJob(engine: Engine, { lease, why }: LostEntry, job: Job, policy: SweepPolicy): Outcome {
  if (why === 'reservation') {
    return fail(job, `no report within its reservation of ${job.spec.reservation} ms`, { random: engine.random });
  }
  // A relay that died had not handed this one on: nobody has failed.
  return lease.worker.startsWith(SERVER_SESSION) ? release(job) : lose(job, policy.maxCrashes, lease.worker);
}

/** A raw task goes back to the front as it was. */
export function returnedTask(lease: Lease): Settlement {
  return { lease, move: release(TASK), spec: TASK_SPEC, priority: 0 };
}

/** The record a raw task gets when it fails for the first time. */
export function taskRecord(task: Bytes, now: number): NewJob {
  return { id: newId(now), payload: task, priority: 0, spec: TASK_SPEC };
}

/** A raw task has had one delivery when it fails. */
export function counted(record: NewJob): Counted {
  return { attempt: 1, crashes: 0, spec: record.spec };
}

const TASK_SPEC = Object.freeze({ ...DEFAULT_SPEC, raw: true });
const TASK: Counted = { attempt: 1, crashes: 0, spec: TASK_SPEC };
