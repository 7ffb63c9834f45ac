// The subjects. Ours appears three times: raw tasks, jobs kept for an hour after they end (our default), and jobs
// removed when done, as the peers on Redis are configured; a subject whose package is not installed is skipped.
import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const EVERYWHERE = ['redis', 'sqlite', 'postgres'];

export const SUBJECTS = [
  { name: 'crore push', file: 'crore.mjs', stores: EVERYWHERE, ours: true, options: { verb: 'push' } },
  { name: 'crore add', file: 'crore.mjs', stores: EVERYWHERE, ours: true, options: { verb: 'add' } },
  {
    name: 'crore add, forgotten',
    file: 'crore.mjs',
    stores: EVERYWHERE,
    ours: true,
    options: { verb: 'add, forgotten' },
  },
  // Beside plainjob, which does not wait for the disk either.
  { name: 'crore add, normal', file: 'crore.mjs', stores: ['sqlite'], ours: true, options: { verb: 'add, normal' } },
  { name: 'bullmq', file: 'bullmq.mjs', stores: ['redis'] },
  { name: 'bee-queue', file: 'bee-queue.mjs', stores: ['redis'] },
  { name: 'groupmq', file: 'groupmq.mjs', stores: ['redis'] },
  { name: 'plainjob', file: 'plainjob.mjs', stores: ['sqlite'] },
  { name: 'plainjob, full', file: 'plainjob.mjs', stores: ['sqlite'], options: { synchronous: 'FULL' } },
  { name: 'graphile-worker', file: 'graphile-worker.mjs', stores: ['postgres'] },
  { name: 'pg-boss', file: 'pg-boss.mjs', stores: ['postgres'] },
  { name: 'river', file: 'river.mjs', stores: ['postgres'], without: ['pickup latency, two processes'] },
  { name: 'ceiling', file: 'redis-ceiling.mjs', stores: ['redis'] },
  { name: 'ceiling, records', file: 'redis-ceiling.mjs', stores: ['redis'], options: { records: true } },
  { name: 'ceiling', file: 'sqlite-ceiling.mjs', stores: ['sqlite'], without: ['pickup latency, two processes'] },
  { name: 'ceiling', file: 'postgres-ceiling.mjs', stores: ['postgres'] },
  // A family is measured separately: these subjects take and finish tasks by hand.
  { name: 'worqr', file: 'worqr.mjs', stores: ['redis'], ours: true, family: 'worqr', options: { verb: 'worqr' } },
  { name: "original's shape", file: 'worqr-shape.mjs', stores: ['redis'], family: 'worqr' },
];

/** The path of our own library; CRORE_DIST selects another build to measure. */
export const OURS = process.env.CRORE_DIST ?? fileURLToPath(new URL('../../dist/index.js', import.meta.url));

/** The subject's module: `open(place)` returns enqueueOne, enqueueMany, work, pending and close; one with `measure(name, task)` runs the cases itself. */
export function load(subject) {
  return import(new URL(subject.file, import.meta.url));
}

/** Undefined when the subject can be measured, else the reason why not. */
export async function obstacle(subject) {
  try {
    if (subject.ours && !existsSync(OURS)) return `no build at ${relative(process.cwd(), OURS)}`;
    const { probe } = await load(subject);
    await probe?.();
    return undefined;
  } catch (error) {
    return String(error.message).split('\n')[0];
  }
}
