import type { Entry, Job, NewJob, Spec } from '../../dist/job/job.js';
import { DEFAULT_SPEC, sharedSpec } from '../../dist/job/spec.js';
import type { Outcome } from '../../dist/job/transitions.js';
import type { Settlement, Store } from '../../dist/store/store.js';

export function newJob(id: string, options: Partial<Omit<NewJob, 'spec'>> & { spec?: Partial<Spec> } = {}): NewJob {
  const spec = options.spec ? sharedSpec({ ...DEFAULT_SPEC, ...options.spec }) : DEFAULT_SPEC;
  return { id, payload: `"${id}"`, priority: 0, ...options, spec };
}

export function settlementOf(entry: Entry, move: Outcome, record?: NewJob): Settlement {
  const job = entry.job;
  return { lease: entry.lease, outcome: move, spec: job?.spec ?? DEFAULT_SPEC, priority: job?.priority ?? 0, record };
}

/** Ids of jobs and texts of tasks, in order. */
export function names(entries: readonly Entry[]): string[] {
  return entries.map((entry) => entry.job?.id ?? Buffer.from(entry.task!).toString());
}

export async function mustGet(store: Store, queue: string, id: string): Promise<Job> {
  const [job] = await store.get(queue, [id]);
  if (!job) throw new Error(`job ${id} is not in the store`);
  return job;
}
