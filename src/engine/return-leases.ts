import type { Lease } from '../job/job.js';
import type { Settlement, Store } from '../store/store.js';
import { returnLease } from './raw-task.js';

/** Returns leases of a claim whose answer never arrived to the front of the queue, as if it had not happened. */
export async function returnLeases(store: Store, queue: string, leases: readonly Lease[]): Promise<void> {
  if (leases.length === 0) return;
  const jobs = await store.get(
    queue,
    leases.flatMap((lease) => lease.id ?? []),
  );
  const byToken = new Map(jobs.flatMap((job) => (job?.token ? [[job.token, job] as const] : [])));
  const settlements = leases.flatMap((lease): Settlement[] => {
    if (lease.id === undefined) return [returnLease({ lease })];
    const job = byToken.get(lease.token);
    return job ? [returnLease({ lease, job })] : [];
  });
  if (settlements.length > 0) await store.settle(queue, settlements);
}
