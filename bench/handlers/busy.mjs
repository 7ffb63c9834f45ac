// A handler, and a sandboxed processor of BullMQ, that computes for about 20 ms: nothing in it waits.
import { createHash } from 'node:crypto';

const TIMES = 20_000;

export default async (job) => {
  let digest = String(job.id);
  for (let i = 0; i < TIMES; i++) digest = createHash('sha256').update(digest).digest('hex');
};
