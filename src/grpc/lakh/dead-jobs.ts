import { deadJobs } from '../../engine/dead-jobs.js';
import type { Engine } from '../../engine/engine.js';
import { HEAD } from '../http2/frames.js';
import { argsOf } from './consumer.js';
import { executionTimeOf } from './execution-time.js';
import { JobWriter } from './writer.js';

/** A client accepts messages of 4 MB by default; some of that is reserved for what surrounds the jobs. */
const MOST_BYTES = 4 * 1024 * 1024 - 16 * 1024;
/** Field 1 of `DeadJobs`, a nested message. */
const JOBS = (1 << 3) | 2;

/** A `DeadJobs` message: as many of the newest dead jobs of all queues as fit. */
export async function deadJobsMessage(engine: Engine): Promise<Buffer> {
  const writer = new JobWriter();
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const job of deadJobs(engine)) {
    const times = { execution: executionTimeOf(job), reservation: job.spec.reservation };
    writer.add(job.id, job.queue, argsOf({ job }), times);
    const message = writer.take().subarray(HEAD);
    const field = Buffer.concat([Buffer.from([JOBS, ...varint(message.length)]), message]);
    bytes += field.length;
    if (bytes > MOST_BYTES) break;
    parts.push(field);
  }
  return Buffer.concat(parts);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let left = value;
  for (; left > 127; left >>= 7) bytes.push((left & 127) | 128);
  return [...bytes, left];
}
