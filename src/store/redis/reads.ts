import { batchCounts } from '../../job/batch.js';
import { readChildren } from '../../job/children.js';
import { type Job, STATES, type State } from '../../job/job.js';
import { readLog, readProgressSteps } from '../../job/timed-lines.js';
import type { Counts, Dependents, JobPage, ListOptions, WorkerInfo } from '../store.js';
import type { Arg, Reply } from './connection/client.js';
import { type FoundLease, walkLeases } from './leases.js';
import { decodeJob } from './records/codec.js';
import { text, type View } from './view.js';

export async function get(view: View, queue: string, ids: readonly string[]): Promise<(Job | undefined)[]> {
  if (ids.length === 0) return [];
  const flat = (await run(view, 'get', queue, ids)) as (Buffer | null)[];
  return ids.map((id, i) => {
    const [record, state, found, progress, log, attempts, children, batch, steps] = flat.slice(9 * i, 9 * i + 9);
    if (!record) return undefined;
    const job = decodeJob(queue, id, record, found ?? null, text(state!) as State);
    if (progress) job.progress = progress.toString();
    if (steps) job.progressSteps = readProgressSteps(steps.toString());
    if (log) Object.assign(job, readLog(log.toString()));
    if (attempts) job.attempts = attempts.toString();
    if (children) job.children = readChildren(children.toString());
    if (batch) job.batch = batchCounts(batch.toString(), job.state);
    return job;
  });
}

export async function list(view: View, queue: string, options: ListOptions): Promise<JobPage> {
  const from = Buffer.from(options.cursor ?? '', 'base64url');
  const [cursor, ...members] = (await run(view, 'list', queue, [
    options.state,
    from,
    String(options.limit),
  ])) as Buffer[];
  const ids = members.map((id) => text(id));
  const jobs = await get(view, queue, ids);
  return {
    jobs: jobs.filter((job): job is Job => job?.state === options.state),
    cursor: cursor!.length === 0 ? undefined : cursor!.toString('base64url'),
  };
}

export async function count(view: View, queue: string): Promise<Counts> {
  const counts = (await run(view, 'count', queue, [])) as number[];
  const found = Object.fromEntries(STATES.map((state, i) => [state, counts[i]])) as Counts;
  const dropped = counts[STATES.length]!;
  return dropped > 0 ? { ...found, droppedDead: dropped } : found;
}

/** Members are the dependent's queue, empty for this one, and its id. */
export async function dependents(
  { client, keys }: View,
  queue: string,
  id: string,
  limit: number,
): Promise<Dependents> {
  const key = Buffer.concat([Buffer.from(`${keys.queue(queue).stem}deps:`), Buffer.from(id)]);
  const total = Number(await client.call('SCARD', key));
  if (total === 0) return { jobs: [], total };
  const members = (await client.call('SRANDMEMBER', key, String(limit))) as Buffer[];
  const jobs = members
    .map((member) => member.toString().split('\0'))
    .map(([other, down]) => ({ queue: other === '' ? queue : other!, id: down! }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  return { jobs, total };
}

export async function queues({ client, keys }: View): Promise<string[]> {
  const names = (await client.call('SMEMBERS', keys.registry[0])) as Buffer[];
  return names.map((name) => name.toString()).sort();
}

export async function workers({ client, keys }: View, queue: string): Promise<WorkerInfo[]> {
  const { stem } = keys.queue(queue);
  // A given client may use RESP3, where members and scores come in pairs.
  const reply = (await client.call('ZRANGE', `${stem}workers`, '0', '-1', 'WITHSCORES')) as Reply[];
  const flat = reply.flat() as Buffer[];
  const found: WorkerInfo[] = [];
  const ids = flat.filter((_item, i) => i % 2 === 0);
  const infos = ids.length > 0 ? ((await client.call('HMGET', `${stem}info`, ...ids)) as Buffer[]) : [];
  for (const [i, id] of ids.entries()) {
    found.push({ id: text(id), deadline: Number(text(flat[2 * i + 1]!)), holds: 0, info: text(infos[i]!) });
  }
  const byId = new Map(found.map((worker) => [worker.id, worker]));
  for await (const { lease } of walkLeases(client, stem)) {
    const worker = byId.get(lease.worker);
    if (worker) worker.holds += 1;
  }
  return found;
}

/** Leases of the wanted workers. */
export async function leasesOf(view: View, queue: string, wanted: (worker: string) => boolean): Promise<FoundLease[]> {
  const found: FoundLease[] = [];
  for await (const one of walkLeases(view.client, view.keys.queue(queue).stem)) {
    if (wanted(one.lease.worker)) found.push(one);
  }
  return found;
}

/** Which of these sessions want their raw tasks returned unchanged. */
export async function rawSessions({ client, keys }: View, queue: string, names: string[]): Promise<Set<string>> {
  if (names.length === 0) return new Set();
  const flags = (await client.call('SMISMEMBER', `${keys.queue(queue).stem}raw`, ...names)) as number[];
  return new Set(names.filter((_name, i) => flags[i] === 1));
}

async function run(view: View, name: 'get' | 'list' | 'count', queue: string, args: readonly Arg[]): Promise<Reply> {
  return (await view.run(name, queue, [view.time(), ...args])).reply;
}
