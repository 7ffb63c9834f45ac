// A producer (this process) and a worker (a forked one) on the same queue at the same time.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { payloads } from '../payloads.mjs';
import { inFlight, within } from '../wait.mjs';

const CHUNK = 100;
const CHUNKS_IN_FLIGHT = 4;
const PATIENCE_MS = 60_000;
const WORKER = fileURLToPath(new URL('./worker-process.mjs', import.meta.url));

/** From the first add here until the last job is handled there. */
export async function twoProcesses({ subject, entry, place, jobs }) {
  const worker = fork(WORKER, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  try {
    worker.send({ entry, place, jobs });
    await heard(worker, 'the worker process to start');
    const handled = heard(worker, `the worker process to handle ${jobs} jobs`);
    const started = process.hrtime.bigint();
    await Promise.all([produce(subject, jobs), handled]);
    const { at } = await handled;
    const ms = Number(BigInt(at) - started) / 1e6;
    return { ms, values: { rate: (jobs * 1000) / ms } };
  } finally {
    worker.kill('SIGKILL');
  }
}

/** Bulk calls of a hundred; the next one waits while four are unanswered. */
function produce(subject, jobs) {
  return inFlight(Math.ceil(jobs / CHUNK), CHUNKS_IN_FLIGHT, (index) => {
    const start = index * CHUNK;
    return subject.enqueueMany(payloads(start, Math.min(CHUNK, jobs - start)));
  });
}

async function heard(worker, what) {
  const exit = once(worker, 'exit').then(() => {
    throw new Error(`the worker process ended while waiting for ${what}`);
  });
  const [message] = await within(PATIENCE_MS, what, Promise.race([once(worker, 'message'), exit]));
  if (message.error) throw new Error(message.error);
  return message;
}
