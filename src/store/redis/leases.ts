import type { Job, Lease } from '../../job/job.js';
import type { LostEntry } from '../store.js';
import type { RedisClient } from './connection/client.js';
import { readActive } from './records/codec.js';
import { FIRST_PLACE, readTaskBatch, tokenAt } from './tasks/task-batches.js';

const PAGE = '1000';
/** Page size for raw tasks, where one field may be a task batch of fifty. */
const BATCHES = '200';

/** A lease as stored in the hashes of a queue; `task` is present for raw tasks. */
export interface FoundLease {
  lease: Lease;
  task?: Buffer;
}

/**
 * Iterates over all leases of a queue, page by page. There is no index by worker: every claim would pay for it per job,
 * and it is only needed when a worker dies, leaves or is inspected.
 */
export async function* walkLeases(client: RedisClient, stem: string): AsyncGenerator<FoundLease> {
  for await (const [id, run] of scan(client, `${stem}active`)) {
    if (id.length === 0) continue; // the padding: see pad.lua
    const { token, worker } = readActive(run.toString());
    yield { lease: { worker, token, id: id.toString() } };
  }
  yield* walkTasks(client, stem);
}

/** Raw tasks only. A task batch that ends between the two reads looks complete, but settling it is refused. */
export async function* walkTasks(client: RedisClient, stem: string): AsyncGenerator<Required<FoundLease>> {
  for await (const page of pages(client, `${stem}leased`, BATCHES)) {
    const gone = (await client.call('HMGET', `${stem}over`, ...page.map(([field]) => field))) as (Buffer | null)[];
    for (const [i, [field, value]] of page.entries()) {
      const first = field.toString();
      const { worker, tasks } = readTaskBatch(first, value);
      for (const [place, task] of tasks.entries()) {
        if (!gone[i]?.includes(FIRST_PLACE + place)) yield { lease: { worker, token: tokenAt(first, place) }, task };
      }
    }
  }
}

async function* scan(client: RedisClient, key: string): AsyncGenerator<[Buffer, Buffer]> {
  for await (const page of pages(client, key, PAGE)) yield* page;
}

/** Fields with their values; no page is empty. */
async function* pages(client: RedisClient, key: string, size: string): AsyncGenerator<[Buffer, Buffer][]> {
  let cursor = '0';
  do {
    const [next, fields] = (await client.call('HSCAN', key, cursor, 'COUNT', size)) as [Buffer, Buffer[]];
    cursor = next.toString();
    const page: [Buffer, Buffer][] = [];
    for (let i = 0; i < fields.length; i += 2) page.push([fields[i]!, fields[i + 1]!]);
    if (page.length > 0) yield page;
  } while (cursor !== '0');
}

/** The claim sequence in a token, `<first sequence>-<index>`, as a sortable number. */
export function claimOf(token: string): number {
  const [first, index] = token.split('.')[1]!.split('-');
  return Number(first) * 1_000 + Number(index);
}

/** Latest claim first, so that returning them to the front in this order restores the original order. */
export function latestFirst(leases: FoundLease[]): FoundLease[] {
  return leases.sort((a, b) => claimOf(b.lease.token) - claimOf(a.lease.token));
}

export function asLost({ lease, task }: FoundLease, job: Job | undefined, raw: boolean): LostEntry | undefined {
  if (task) return { lease, task, why: 'worker', raw };
  return job?.token === lease.token ? { lease, job, why: 'worker' } : undefined;
}
