import { type LostEntry, SERVER_SESSION } from '../store.js';
import type { Reply } from './connection/client.js';
import { asLost, type FoundLease, latestFirst } from './leases.js';
import { get, leasesOf, rawSessions } from './reads.js';
import type { View } from './view.js';

/** Maximum number of dead workers' leases handled per call. */
const CHUNK = 500;

/** The leases of dead workers, latest claim first; the session of a worker that holds nothing any more is removed. */
export async function lostWithWorkers(view: View, queue: string, workers: ReadonlySet<string>): Promise<LostEntry[]> {
  const leases = await leasesOf(view, queue, (worker) => workers.has(worker));
  const found = latestFirst(await withoutReserved(view, queue, leases));
  const holders = new Set(found.map(({ lease }) => lease.worker));
  for (const worker of workers) {
    if (!holders.has(worker)) await view.run('leave', queue, [view.time(), worker, '1']);
  }
  const chunk = found.slice(0, CHUNK);
  const jobs = await get(
    view,
    queue,
    chunk.map(({ lease }) => lease.id ?? ''),
  );
  const raw = await rawSessions(view, queue, [...holders]);
  return chunk.map((one, i) => asLost(one, jobs[i], raw.has(one.lease.worker))).filter((lost) => lost !== undefined);
}

export async function lostWithReservations(view: View, queue: string, ids: readonly string[]): Promise<LostEntry[]> {
  const lost: LostEntry[] = [];
  for (const job of await get(view, queue, ids)) {
    if (job?.state !== 'active') continue;
    lost.push({ lease: { worker: job.worker!, token: job.token!, id: job.id }, job, why: 'reservation' });
  }
  return lost;
}

/** Omits jobs that a server session has delivered and whose reservation has not ended. */
async function withoutReserved(view: View, queue: string, found: FoundLease[]): Promise<FoundLease[]> {
  const delivered = found.filter(({ lease }) => lease.id !== undefined && lease.worker.startsWith(SERVER_SESSION));
  const reserved = new Set<FoundLease>();
  const key = `${view.keys.queue(queue).stem}reserved`;
  for (let i = 0; i < delivered.length; i += CHUNK) {
    const page = delivered.slice(i, i + CHUNK);
    const scores = (await view.client.call('ZMSCORE', key, ...page.map(({ lease }) => lease.id!))) as Reply[];
    page.forEach((one, k) => {
      if (scores[k] !== null) reserved.add(one);
    });
  }
  return found.filter((one) => !reserved.has(one));
}
