// The cost on the server itself. These are the most stable figures on a busy machine.
import { empty } from './drain.mjs';
import { fill } from './enqueue.mjs';

const CONCURRENCY = 100;

/** Bytes the server holds per waiting job: memory of Redis, files of PostgreSQL. */
export async function memory({ subject, control, waiting }) {
  const before = await control.heldBytes();
  await fill(subject, waiting);
  const after = await control.heldBytes();
  return { ms: Number.POSITIVE_INFINITY, values: { bytes: (after - before) / waiting } };
}

/** CPU time of the server for the whole life of a job, added in bulk and drained at concurrency 100. */
export async function cpu({ subject, control, jobs }) {
  const before = await control.busyMicroseconds();
  await fill(subject, jobs);
  const { ms, close } = await empty(subject, jobs, CONCURRENCY);
  const after = await control.busyMicroseconds();
  await close();
  return { ms, values: { cpu: (after - before) / jobs } };
}
