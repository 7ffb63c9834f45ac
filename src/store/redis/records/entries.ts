import type { Entry } from '../../../job/job.js';
import { applyRun, decodeRecord } from './codec.js';
import { unpack } from './msgpack.js';

/** The reply of a claim, still packed. */
export interface Claimed {
  first: number;
  nonce: string;
  ids: Buffer;
  bodies: Buffer;
  runs: Buffer;
}

/**
 * Decodes claimed entries with their leases. No entry keeps a slice of the reply: a long job must not retain its whole
 * batch.
 */
export function readEntries(queue: string, worker: string, { first, nonce, ids, bodies, runs }: Claimed): Entry[] {
  const names: string[] = [];
  const tried: (Buffer | undefined)[] = [];
  const entries: Entry[] = [];
  unpack(ids, (start, end) => names.push(ids.toString('utf8', start, end)));
  unpack(runs, (start, end) => tried.push(start < end ? runs.subarray(start, end) : undefined));
  unpack(bodies, (start, end, i) => {
    const claim = `.${first}-${THREE_DIGITS[i]}.${nonce}`;
    const id = names[i]!;
    if (id === '') {
      entries.push({ lease: { worker, token: `1${claim}` }, task: Buffer.from(bodies.subarray(start, end)) });
      return;
    }
    const job = decodeRecord(queue, id, bodies, start, end);
    const run = tried[i];
    if (run) applyRun(job, run);
    job.state = 'active';
    job.attempt += 1;
    job.worker = worker;
    job.token = `${job.attempt}${claim}`;
    entries.push({ lease: { worker, token: job.token, id }, job });
  });
  return entries;
}

/** Indexes within a claim, in the form used in tokens. */
export const THREE_DIGITS = Array.from({ length: 1_000 }, (_x, i) => String(i).padStart(3, '0'));
