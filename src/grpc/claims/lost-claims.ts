import { returnLeases } from '../../engine/return-leases.js';
import { LostClaim } from '../../store/lost-claim.js';
import type { Store, WorkerSession } from '../../store/store.js';
import type { Log } from '../context.js';

/** When the store is asked, in milliseconds after the loss: it may carry out a claim whose connection is already gone. */
const LOOKS = [200, 2_000, 10_000];

/**
 * Returns what a claim has leased whose answer was lost. Its session lives on with the server, and jobs with a reservation outlive even that, so no sweep
 * would return them soon.
 */
export function returnLostClaim(store: Store, { queue, worker }: WorkerSession, error: unknown, log: Log): void {
  if (!(error instanceof LostClaim)) return;
  const look = async () => {
    const leases = await store.leasesOf(queue, worker);
    await returnLeases(
      store,
      queue,
      leases.filter(({ token }) => token.endsWith(`.${error.mark}`)),
    );
  };
  const failed = (err: unknown) => log.warn({ err, queue }, 'a lost claim could not be looked up');
  for (const wait of LOOKS) setTimeout(() => void look().catch(failed), wait).unref();
}
