import { payload, payloads } from '../payloads.mjs';
import { inFlight } from '../wait.mjs';

const WIDTH = 100;
const CHUNK = 1000;
const CHUNKS_IN_FLIGHT = 4;

/** One call per job, a hundred callers at once. */
export async function oneByOne({ subject, jobs }) {
  const started = performance.now();
  await inFlight(jobs, WIDTH, (index) => subject.enqueueOne(payload(index)));
  return rate(jobs, started);
}

/** A thousand jobs per call. */
export async function bulk({ subject, jobs }) {
  const started = performance.now();
  await fill(subject, jobs);
  return rate(jobs, started);
}

/** Adds `jobs` jobs to the queue in the fastest way available. */
export function fill(subject, jobs) {
  return inFlight(Math.ceil(jobs / CHUNK), CHUNKS_IN_FLIGHT, (index) => {
    const start = index * CHUNK;
    return subject.enqueueMany(payloads(start, Math.min(CHUNK, jobs - start)));
  });
}

function rate(jobs, started) {
  const ms = performance.now() - started;
  return { ms, values: { rate: (jobs * 1000) / ms } };
}
