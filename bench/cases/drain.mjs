import { until, within } from '../wait.mjs';
import { fill } from './enqueue.mjs';

const PATIENCE_MS = 60_000;

/** A full queue and a handler that does nothing: from the first job handled until every job is acked. */
export const drain = (concurrency) =>
  async function run({ subject, jobs }) {
    await fill(subject, jobs);
    const { ms, close } = await empty(subject, jobs, concurrency);
    await close();
    return { ms, values: { rate: (jobs * 1000) / ms } };
  };

/** Drains the queue; `ms` excludes the worker's start-up, and the caller closes the worker. */
export async function empty(subject, jobs, concurrency) {
  const tally = count(jobs);
  const worker = await subject.work(concurrency, tally.onJob);
  await within(PATIENCE_MS, `handling ${jobs} jobs`, tally.handled);
  await until(PATIENCE_MS, 'acknowledging the last jobs', async () => (await subject.pending()) === 0);
  const ms = performance.now() - tally.firstAt();
  return { ms, close: () => within(PATIENCE_MS, 'closing the worker', worker.close()) };
}

/** Counts handler calls: the time of the first, and a promise for the last. */
function count(jobs) {
  let seen = 0;
  let first;
  let finish;
  const handled = new Promise((resolve) => {
    finish = resolve;
  });
  const onJob = () => {
    first ??= performance.now();
    if (++seen === jobs) finish();
  };
  return { onJob, handled, firstAt: () => first };
}
