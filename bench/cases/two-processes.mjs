// A producer (this process) and a worker (a forked one) on the same queue at the same time.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { payload, payloads } from '../payloads.mjs';
import { inFlight, sleep, within } from '../wait.mjs';
import { PAUSE_MS, percentiles, WARM_UP } from './latency.mjs';

const CHUNK = 100;
const CHUNKS_IN_FLIGHT = 4;
const PATIENCE_MS = 60_000;
const WORKER = fileURLToPath(new URL('./worker-process.mjs', import.meta.url));

/** From the first add in this process until the worker has handled the last job, after as many warm-up jobs. */
export async function twoProcesses({ subject, entry, place, jobs }) {
  return withWorker({ entry, place, jobs, concurrency: 100 }, async (worker) => {
    await pass(worker, subject, jobs);
    const ms = await pass(worker, subject, jobs);
    return { ms, values: { rate: (jobs * 1000) / ms } };
  });
}

/** The pickup latency if the idle worker is another process: from the call that adds the job until its handler starts there. */
export async function latencyInTwoProcesses({ subject, entry, place, samples }) {
  return withWorker({ entry, place, jobs: 1, concurrency: 1, options: { latency: true } }, async (worker) => {
    const took = [];
    for (let index = 0; index < WARM_UP + samples; index++) {
      await sleep(PAUSE_MS);
      const handled = heard(worker, 'picking up one job');
      const started = process.hrtime.bigint();
      const [{ at }] = await Promise.all([handled, subject.enqueueOne(payload(index))]);
      took.push(Number(BigInt(at) - started) / 1e6);
    }
    return { ms: Number.POSITIVE_INFINITY, values: percentiles(took.slice(WARM_UP)) };
  });
}

async function withWorker(task, measure) {
  const worker = fork(WORKER, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  try {
    worker.send(task);
    await heard(worker, 'starting the worker process');
    return await measure(worker);
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
  const gone = new AbortController();
  const exited = () => gone.abort();
  worker.once('exit', exited);
  try {
    const [message] = await within(PATIENCE_MS, what, once(worker, 'message', { signal: gone.signal }));
    if (message.error) throw new Error(message.error);
    return message;
  } catch (error) {
    throw gone.signal.aborted ? new Error(`the worker process ended before ${what} was over`) : error;
  } finally {
    worker.off('exit', exited);
  }
}
