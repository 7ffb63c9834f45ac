import { newId } from '../job/id.js';
import type { Bytes, Entry, Job, Lease, NewJob } from '../job/job.js';
import { DEFAULT_SPEC } from '../job/spec.js';
import { type Outcome, release } from '../job/transitions.js';
import type { Settlement } from '../store/store.js';

/** What a raw task would have in its record: it gets one when it fails for the first time. */
const TASK_SPEC = Object.freeze({ ...DEFAULT_SPEC, raw: true });

/** What is needed of a job to settle it. */
export type ClaimedJob = Pick<Job, 'attempt' | 'crashes' | 'priority' | 'spec'>;

/** A raw task that was claimed, as if it had a record: one delivery, no crash. */
export const CLAIMED_TASK: ClaimedJob = Object.freeze({
  attempt: 1,
  crashes: 0,
  priority: 0,
  spec: TASK_SPEC,
});

/** The record of a raw task that has to be remembered. */
export function taskRecord(task: Bytes, now: number): NewJob {
  return { id: newId(now), payload: task, priority: 0, spec: TASK_SPEC };
}

/** What is needed of an entry to settle it; a raw task has no job. */
export interface Leased {
  lease: Lease;
  job?: ClaimedJob | undefined;
}

/** Settles an entry that was claimed. A raw task gets a record, unless it is done or goes back as it was. */
export function settlementOf(
  { lease, job, task }: Leased & Pick<Entry, 'task'>,
  outcome: Outcome,
  now: () => number,
): Settlement {
  const { spec, priority } = job ?? CLAIMED_TASK;
  const settlement: Settlement = { lease, move: outcome, spec, priority };
  if (job || outcome.to === 'done' || outcome.to === 'ready') return settlement;
  return { ...settlement, record: taskRecord(task!, now()) };
}

/** The one way to give a lease back: to the front of the queue, as if it had not been claimed. */
export function returnLease({ lease, job = CLAIMED_TASK }: Leased): Settlement {
  return { lease, move: release(job), spec: job.spec, priority: job.priority };
}
