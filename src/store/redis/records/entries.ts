import type { Entry, Job } from '../../../job/job.js';
import type { Settlement } from '../../store.js';
import { readTasks, THREE_DIGITS } from '../tasks/task-batches.js';
import { applyRun, decodeRecord } from './codec.js';
import { unpack } from './msgpack.js';

/** The claim that brought some entries. */
export interface ClaimOrigin {
  queue: string;
  worker: string;
  /** When it was made, by the server's clock. */
  now: number;
  first: number;
  nonce: string;
}

/** The entries in the reply of a claim: nothing; lists of ids, bodies and runs; one list of ids and bodies in turn, of jobs that have not run before; or, if
 * all are raw tasks, the size of their batches, and these. */
export type Packed =
  | []
  | [ids: Buffer, bodies: Buffer, runs: Buffer]
  | [jobs: Buffer]
  | [size: number, ...batches: Buffer[]];

/**
 * Decodes claimed entries with their leases. No job keeps a slice of the reply, and a raw task only one of its batch: a long job must not
 * retain everything that was claimed with it.
 */
export function readEntries(origin: ClaimOrigin, packed: Packed): Entry[] {
  if (packed.length === 0) return [];
  if (typeof packed[0] === 'number') return readRawTasks(origin, packed as [number, ...Buffer[]]);
  return packed.length === 1 ? readNewJobs(origin, packed[0]) : readJobs(origin, packed as [Buffer, Buffer, Buffer]);
}

/** What `deliver.lua` sends: the signal channel of the queue, the worker, its claim, and the entries, which are read when they are asked for. */
export function readDelivery(message: Buffer): {
  channel: string;
  worker: string;
  entries: (queue: string) => Entry[];
} {
  const parts: Buffer[] = [];
  unpack(message, (start, end) => parts.push(message.subarray(start, end)));
  const [channel = '', worker = '', nonce = '', times = '', kind] = parts.slice(0, -1).map(String);
  const [now = 0, first = 0] = times.split(' ').map(Number);
  const entries = parts.at(-1)!;
  if (!(now > 0 && first > 0) || (kind !== 'jobs' && kind !== 'task')) throw new Error('not a delivery');
  const read = kind === 'jobs' ? readNewJobs : readNewTask;
  return { channel, worker, entries: (queue) => read({ queue, worker, now, first, nonce }, entries) };
}

function readRawTasks({ worker, first, nonce }: ClaimOrigin, [size, ...batches]: [number, ...Buffer[]]): Entry[] {
  const entries: Entry[] = [];
  const alone = size === 1;
  const own = alone ? batches : batches.map((batch) => Buffer.from(batch));
  readTasks({ first, nonce, size, batches: own }, (token, task) => {
    entries.push({ lease: { worker, token }, task: alone ? Buffer.from(task) : task });
  });
  return entries;
}

function readNewTask({ worker, first, nonce }: ClaimOrigin, task: Buffer): Entry[] {
  return [{ lease: { worker, token: `1.${first}-${THREE_DIGITS[0]}.${nonce}` }, task: Buffer.from(task) }];
}

function readNewJobs(origin: ClaimOrigin, jobs: Buffer): Entry[] {
  const entries: Entry[] = [];
  let id = '';
  unpack(jobs, (start, end, i) => {
    if (i % 2 === 0) id = jobs.toString('utf8', start, end);
    else entries.push(started(origin, decodeRecord(origin.queue, id, jobs, start, end), (i - 1) / 2));
  });
  return entries;
}

/** The entry of a job that a claim has started. */
function started({ worker, now, first, nonce }: ClaimOrigin, job: Job, index: number): Entry {
  job.state = 'active';
  job.attempt += 1;
  job.startedAt = now;
  job.worker = worker;
  job.token = `${job.attempt}.${first}-${THREE_DIGITS[index]}.${nonce}`;
  return { lease: { worker, token: job.token, id: job.id, at: now }, job };
}

function readJobs(origin: ClaimOrigin, [ids, bodies, runs]: [Buffer, Buffer, Buffer]): Entry[] {
  const { queue, worker, first, nonce } = origin;
  const names: string[] = [];
  const tried: (Buffer | undefined)[] = [];
  const entries: Entry[] = [];
  unpack(ids, (start, end) => names.push(ids.toString('utf8', start, end)));
  unpack(runs, (start, end) => tried.push(start < end ? runs.subarray(start, end) : undefined));
  unpack(bodies, (start, end, i) => {
    const id = names[i];
    if (id === undefined) throw new Error('a record without an id');
    if (id === '') {
      entries.push({
        lease: { worker, token: `1.${first}-${THREE_DIGITS[i]}.${nonce}` },
        task: Buffer.from(bodies.subarray(start, end)),
      });
      return;
    }
    const job = decodeRecord(queue, id, bodies, start, end);
    const run = tried[i];
    if (run) applyRun(job, run);
    entries.push(started(origin, job, i));
  });
  return entries;
}

export function isDoneTask({ lease, outcome }: Settlement): boolean {
  return lease.id === undefined && outcome.to === 'done';
}
