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

/** From the first add in this process until the worker has handled the last job, after as many warm-up jobs. */
export async function twoProcesses({ subject, entry, place, jobs }) {
  const worker = fork(WORKER, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  try {
    worker.send({ entry, place, jobs });
    await heard(worker, 'starting the worker process');
    await pass(worker, subject, jobs);
    const ms = await pass(worker, subject, jobs);
    return { ms, values: { rate: (jobs * 1000) / ms } };
  } finally {
    worker.kill('SIGKILL');
  }
}

async function pass(worker, subject, jobs) {
  const handled = heard(worker, `handling ${jobs} jobs in the worker process`);
  const started = process.hrtime.bigint();
  const [{ at }] = await Promise.all([handled, produce(subject, jobs)]);
  return Number(BigInt(at) - started) / 1e6;
}

/** Bulk calls of a hundred jobs; the next one waits while four are unanswered. */
function produce(subject, jobs) {
  return inFlight(Math.ceil(jobs / CHUNK), CHUNKS_IN_FLIGHT, (index) => {
    const start = index * CHUNK;
    return subject.enqueueMany(payloads(start, Math.min(CHUNK, jobs - start)));
  });
}

async function heard(worker, what) {
  const exit = once(worker, 'exit').then(() => {
    throw new Error(`the worker process ended before ${what} was over`);
  });
  const [message] = await within(PATIENCE_MS, what, Promise.race([once(worker, 'message'), exit]));
  if (message.error) throw new Error(message.error);
  return message;
}
