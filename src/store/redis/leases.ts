import type { Job, Lease } from '../../job/job.js';
import type { Lost } from '../store.js';
import type { RedisClient } from './client.js';
import { readActive } from './codec.js';

const PAGE = '1000';

/** A lease as the queue's hashes tell it; `task` is there for raw ones. */
export interface FoundLease {
  lease: Lease;
  task?: Buffer;
}

/**
 * Walks over everything a queue has leased, page by page. There is no index by worker: a claim would pay for it with every
 * job, and it is only asked for when a worker dies, leaves, or is looked at.
 */
export async function* walkLeases(client: RedisClient, stem: string): AsyncGenerator<FoundLease> {
  for await (const [id, run] of scan(client, `${stem}active`)) {
    if (id.length === 0) continue; // the padding: see lib.lua
    const { token, worker } = readActive(run.toString());
    yield { lease: { worker, token, id: id.toString() } };
  }
  for await (const [token, value] of scan(client, `${stem}leased`)) {
    const cut = value.indexOf(0);
    yield { lease: { worker: value.toString('utf8', 0, cut), token: token.toString() }, task: value.subarray(cut + 1) };
  }
}

async function* scan(client: RedisClient, key: string): AsyncGenerator<[Buffer, Buffer]> {
  let cursor = '0';
  do {
    const [next, fields] = (await client.call('HSCAN', key, cursor, 'COUNT', PAGE)) as [Buffer, Buffer[]];
    cursor = next.toString();
    for (let i = 0; i < fields.length; i += 2) yield [fields[i]!, fields[i + 1]!];
  } while (cursor !== '0');
}

/** The claim in a token, `<first sequence>-<index>`, as a number that sorts. */
export function claimOf(token: string): number {
  const [first, index] = token.split('.')[1]!.split('-');
  return Number(first) * 1_000 + Number(index);
}

/** Latest claim first, so that whoever puts them back to the front in this order restores the original one. */
export function latestFirst(leases: FoundLease[]): FoundLease[] {
  return leases.sort((a, b) => claimOf(b.lease.token) - claimOf(a.lease.token));
}

export function asLost({ lease, task }: FoundLease, job: Job | undefined, raw: boolean): Lost | undefined {
  if (task) return { lease, task, why: 'worker', raw };
  return job?.token === lease.token ? { lease, job, why: 'worker' } : undefined;
}
