import type { BatchCounts, BatchPolicy, State, Terminal } from './job.js';

/** The stored form of a batch: policy, 1 while it is open, number of members, and how many are done, dead and cancelled. */

export interface StoredBatch extends BatchCounts {
  policy: BatchPolicy;
}

export function newBatch(policy: BatchPolicy): StoredBatch {
  return { policy, open: true, total: 0, done: 0, dead: 0, cancelled: 0 };
}

export function writeBatch({ policy, open, total, done, dead, cancelled }: StoredBatch): string {
  return [policy, open ? 1 : 0, total, done, dead, cancelled].join(' ');
}

export function readBatch(text: string): StoredBatch {
  const [policy, ...numbers] = text.split(' ');
  const [open, total, done, dead, cancelled] = numbers.map(Number) as [number, number, number, number, number];
  return { policy: policy as BatchPolicy, open: open === 1, total, done, dead, cancelled };
}

/** A batch is open only while its job waits. */
export function batchCounts(text: string, state: State): BatchCounts {
  const { policy: _policy, open, ...counts } = readBatch(text);
  return { open: open && state === 'blocked', ...counts };
}

/** Counts members that have ended. Returns whether this lets the job of the batch run although others have not ended. */
export function countEnds(batch: StoredBatch, state: Terminal): boolean {
  batch[state] += 1;
  const runs = batch.policy === 'failure' && state !== 'done';
  if (runs) batch.open = false;
  return runs;
}
