import { payload } from '../payloads.mjs';
import { sleep, within } from '../wait.mjs';

export const WARM_UP = 300;
export const PAUSE_MS = 4;
const PATIENCE_MS = 10_000;

/** An idle worker and one job at a time: from the call that adds the job until its handler starts. */
export async function latency({ subject, samples }) {
  let onStart;
  const worker = await subject.work(1, () => onStart());
  const took = [];
  for (let index = 0; index < WARM_UP + samples; index++) {
    await sleep(PAUSE_MS);
    const started = performance.now();
    const handled = new Promise((resolve) => {
      onStart = () => resolve(performance.now() - started);
    });
    await within(PATIENCE_MS, 'adding one job', subject.enqueueOne(payload(index)));
    took.push(await within(PATIENCE_MS, 'picking up one job', handled));
  }
  await within(PATIENCE_MS, 'closing the worker', worker.close());
  return { ms: Number.POSITIVE_INFINITY, values: percentiles(took.slice(WARM_UP)) };
}

export function percentiles(samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return { p50: at(0.5), p99: at(0.99) };
}
