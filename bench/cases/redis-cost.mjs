// The cost on the Redis server itself. These are the most stable figures on a busy machine.
import { empty } from './drain.mjs';
import { fill } from './enqueue.mjs';

const CONCURRENCY = 100;

/** Bytes the server holds per waiting job, without its client buffers. */
export async function memory({ subject, control, waiting }) {
  const before = await heldBytes(control);
  await fill(subject, waiting);
  const after = await heldBytes(control);
  return { ms: Number.POSITIVE_INFINITY, values: { bytes: (after - before) / waiting } };
}

/** CPU time of the server for the whole life of a job, added in bulk and drained at concurrency 100. */
export async function cpu({ subject, control, jobs }) {
  const before = await busyMicroseconds(control);
  await fill(subject, jobs);
  const { ms, close } = await empty(subject, jobs, CONCURRENCY);
  const after = await busyMicroseconds(control);
  await close();
  return { ms, values: { cpu: (after - before) / jobs } };
}

async function heldBytes(control) {
  const info = await read(control, 'memory');
  return info('used_memory') - info('mem_clients_normal');
}

export async function busyMicroseconds(control) {
  const info = await read(control, 'cpu');
  return (info('used_cpu_user') + info('used_cpu_sys')) * 1e6;
}

async function read(control, section) {
  const text = await control.info(section);
  return (field) => {
    const match = new RegExp(`^${field}:([0-9.]+)`, 'm').exec(text);
    if (!match) throw new Error(`INFO ${section} has no ${field}`);
    return Number(match[1]);
  };
}
