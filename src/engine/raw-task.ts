import type { Bytes, Entry, Job, Lease, NewJob } from '../job/job.js';
import { DEFAULT_SPEC } from '../job/spec.js';
import { type Outcome, release } from '../job/transitions.js';
import type { Settlement } from '../store/store.js';

/** The spec for the record of a raw task, which it gets when it first fails. */
const TASK_SPEC = Object.freeze({ ...DEFAULT_SPEC, raw: true });

/** The fields of a job that settling it needs. */
export type ClaimedJob = Pick<Job, 'attempt' | 'crashes' | 'priority' | 'spec'>;

/** A claimed raw task, as if it had a record: one delivery, no crash. */
export const CLAIMED_TASK: ClaimedJob = Object.freeze({
  attempt: 1,
  crashes: 0,
  priority: 0,
  spec: TASK_SPEC,
});

/** Builds the record of a raw task that has to be stored. */
export function taskRecord(task: Bytes, id: string): NewJob {
  return { id, payload: task, priority: 0, spec: TASK_SPEC };
}

/** The fields of an entry that settling it needs; a raw task has no job. */
export interface Leased {
  lease: Lease;
  job?: ClaimedJob | undefined;
}

/** Settles a claimed entry. A raw task gets a record, with the given id, unless it is done or goes back unchanged. */
export function settlementOf(
  { lease, job, task }: Leased & Pick<Entry, 'task'>,
  outcome: Outcome,
  id: () => string,
): Settlement {
  const { spec, priority } = job ?? CLAIMED_TASK;
  const settlement: Settlement = { lease, outcome: outcome, spec, priority };
  if (job || outcome.to === 'done' || outcome.to === 'ready') return settlement;
  return { ...settlement, record: taskRecord(task!, id()) };
}

/** The only way to return a lease: to the front of the queue, as if the entry had not been claimed. */
export function returnLease({ lease, job = CLAIMED_TASK }: Leased): Settlement {
  return { lease, outcome: release(job), spec: job.spec, priority: job.priority };
}
