import type { Entry } from '../../../job/job.js';
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

/** The entries in the reply of a claim: nothing; lists of ids, bodies and runs; or, if all are raw tasks, the size of their batches, and these. */
export type Packed = [] | [ids: Buffer, bodies: Buffer, runs: Buffer] | [size: number, ...batches: Buffer[]];

/**
 * Decodes claimed entries with their leases. No job keeps a slice of the reply, and a raw task only one of its batch: a long job must not
 * retain everything that was claimed with it.
 */
export function readEntries(origin: ClaimOrigin, packed: Packed): Entry[] {
  if (packed.length === 0) return [];
  return typeof packed[0] === 'number'
    ? readRawTasks(origin, packed as [number, ...Buffer[]])
    : readJobs(origin, packed as [Buffer, Buffer, Buffer]);
}

const DELIVERY_PARTS = 7;

/** What `deliver.lua` sends: the signal channel of the queue, the worker, and the parts of a claim's reply. The entries are read when they are asked for. */
export function readDelivery(message: Buffer): {
  channel: string;
  worker: string;
  entries: (queue: string) => Entry[];
} {
  const parts: Buffer[] = [];
  unpack(message, (start, end) => parts.push(message.subarray(start, end)));
  const [channel, worker, nonce, now, first] = parts.slice(0, 5).map(String) as [
    string,
    string,
    string,
    string,
    string,
  ];
  const [one, two] = parts.slice(5) as [Buffer, Buffer];
  // A task comes with the size of its batch, jobs come with their ids, and none of them has run before.
  const packed: Packed = one.length <= 2 ? [Number(String(one)), two] : [one, two, NO_RUNS];
  const origin = { worker, now: Number(now), first: Number(first), nonce };
  if (parts.length !== DELIVERY_PARTS || !(origin.now > 0 && origin.first > 0)) throw new Error('not a delivery');
  return { channel, worker, entries: (queue) => readEntries({ queue, ...origin }, packed) };
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

function readJobs(
  { queue, worker, now, first, nonce }: ClaimOrigin,
  [ids, bodies, runs]: [Buffer, Buffer, Buffer],
): Entry[] {
  const names: string[] = [];
  const tried: (Buffer | undefined)[] = [];
  const entries: Entry[] = [];
  unpack(ids, (start, end) => names.push(ids.toString('utf8', start, end)));
  unpack(runs, (start, end) => tried.push(start < end ? runs.subarray(start, end) : undefined));
  unpack(bodies, (start, end, i) => {
    const claim = `.${first}-${THREE_DIGITS[i]}.${nonce}`;
    const id = names[i];
    if (id === undefined) throw new Error('a record without an id');
    if (id === '') {
      entries.push({ lease: { worker, token: `1${claim}` }, task: Buffer.from(bodies.subarray(start, end)) });
      return;
    }
    const job = decodeRecord(queue, id, bodies, start, end);
    const run = tried[i];
    if (run) applyRun(job, run);
    job.state = 'active';
    job.attempt += 1;
    job.startedAt = now;
    job.worker = worker;
    job.token = `${job.attempt}${claim}`;
    entries.push({ lease: { worker, token: job.token, id, at: now }, job });
  });
  return entries;
}

/** An empty list. */
const NO_RUNS = Buffer.from([0x90]);

export function isDoneTask({ lease, outcome }: Settlement): boolean {
  return lease.id === undefined && outcome.to === 'done';
}
