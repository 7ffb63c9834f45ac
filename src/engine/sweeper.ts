import { newId } from '../job/id.js';
import type { Bytes, Job, Lease, NewJob } from '../job/job.js';
import { DEFAULT_SPEC } from '../job/spec.js';
import { type Counted, fail, lose, type Move, release } from '../job/transitions.js';
import { type Lost, RELAY, type Settlement } from '../store/store.js';
import type { Care } from './duties.js';
import type { Engine } from './engine.js';

/** Rounds of one sweep: what is left waits for the next. */
const MAX_ROUNDS = 50;

/** Sweeps a queue and decides what becomes of what it finds. */
export async function sweepQueue(engine: Engine, queue: string, care: Care): Promise<void> {
  let every = Math.floor(care.sweep / 2);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const { lost, more } = await engine.store.sweep(queue, { lease: care.lease, every });
    if (lost.length > 0)
      await engine.store.settle(
        queue,
        lost.map((entry) => judge(engine, entry, care)),
      );
    if (!more) return;
    every = 0;
  }
}

function judge(engine: Engine, entry: Lost, care: Care): Settlement {
  const { lease } = entry;
  if (entry.job) {
    const { job } = entry;
    return { lease, move: judgeJob(engine, entry, job, care), spec: job.spec, priority: job.priority };
  }
  if (entry.raw || lease.worker.startsWith(RELAY)) return givenBack(lease);
  const record = taskRecord(entry.task, engine.store.now());
  return { lease, move: lose(counted(record), care.maxCrashes, lease.worker), spec: record.spec, priority: 0, record };
}

function judgeJob(engine: Engine, { lease, why }: Lost, job: Job, care: Care): Move {
  if (why === 'reservation') {
    return fail(job, `no report within its reservation of ${job.spec.reservation} ms`, { random: engine.random });
  }
  // A relay that died had not handed this one on: nobody has failed.
  return lease.worker.startsWith(RELAY) ? release(job) : lose(job, care.maxCrashes, lease.worker);
}

/** A raw task goes back to the front as it was. */
export function givenBack(lease: Lease): Settlement {
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
