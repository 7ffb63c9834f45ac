import { isTerminal } from '../job/job.js';
import type { Settlement, Store } from './store.js';

/** Which settlements a call has applied, and whether the reply to a first try of it was lost. */
export interface SettleReply {
  applied: boolean[];
  repeated: boolean;
}

/**
 * Which settlements took effect, in the first try or in its repetition. What the repetition has refused was applied before, unless the record of the
 * job says otherwise: the job is not ended, or it has ended with other counts. So a stale report is not taken for an accepted one because
 * a connection broke. Raw tasks, and jobs that are not kept, leave no record: they count as settled.
 */
export async function settledInAll(
  store: Pick<Store, 'get'>,
  queue: string,
  settlements: readonly Settlement[],
  { applied, repeated }: SettleReply,
): Promise<boolean[]> {
  if (!repeated || !applied.includes(false)) return applied;
  const doubtful = settlements.flatMap(({ lease, outcome }, i) =>
    !applied[i] && lease.id !== undefined && isTerminal(outcome.to) ? [i] : [],
  );
  const ids = doubtful.map((i) => settlements[i]!.lease.id!);
  const records = ids.length > 0 ? await store.get(queue, ids).catch(() => []) : [];
  const result = applied.map(() => true);
  for (const [k, i] of doubtful.entries()) {
    const [record, { outcome }] = [records[k], settlements[i]!];
    if (!record) continue;
    const { state, attempt, crashes } = record;
    result[i] = state === outcome.to && attempt === outcome.attempt && crashes === outcome.crashes;
  }
  return result;
}
