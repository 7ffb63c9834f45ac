// What the Redis server itself pays. These are the steadiest figures on a busy machine.
import { empty } from './drain.mjs';
import { fill } from './enqueue.mjs';

const CONCURRENCY = 100;

/** Bytes the server holds per waiting job, its buffers for clients left out. */
export async function memory({ subject, control, waiting }) {
  const before = await heldBytes(control);
  await fill(subject, waiting);
  const after = await heldBytes(control);
  return { ms: Number.POSITIVE_INFINITY, values: { bytes: (after - before) / waiting } };
}

/** Processor time of the server for a job's whole life, added in bulk and drained at concurrency 100. */
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
