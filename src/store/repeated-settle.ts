import { isTerminal, type Job, type Lease } from '../job/job.js';
import type { Settlement, Store } from './store.js';

/** Which settlements a call has applied, and whether the reply to a first try of it was lost. */
export interface SettleReply {
  applied: boolean[];
  repeated: boolean;
}

/**
 * Which settlements took effect, in the first try or in its repetition. What the repetition has refused was applied before, unless the record of the
 * job says otherwise: the job is not ended, or it has ended with other counts, or the run that ended it was another one. So a stale report is not taken for an
 * accepted one because a connection broke. Raw tasks, and jobs that are not kept, leave no record: they count as settled.
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
    const [record, { outcome, lease }] = [records[k], settlements[i]!];
    if (!record) continue;
    const { state, attempt, crashes } = record;
    const isEnd = state === outcome.to && attempt === outcome.attempt && crashes === outcome.crashes;
    result[i] = isEnd && isRunOf(lease, record);
  }
  return result;
}

/** Done jobs keep the start and the worker of their last run. A claim that was undone is not counted, so the next run may have the same counts. */
function isRunOf({ worker, at }: Lease, { state, worker: last, startedAt }: Job): boolean {
  if (state !== 'done') return true;
  return (last === undefined || last === worker) && (at === undefined || startedAt === undefined || at === startedAt);
}
