// Waits with a time limit: nothing in the benchmark may hang without reporting what it waited for.
import { setTimeout as sleep } from 'node:timers/promises';

export { sleep };

/** The promise's result, or an error that names what did not happen in time. */
export async function within(ms, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Checks every millisecond until `check` is true. */
export async function until(ms, what, check) {
  const deadline = performance.now() + ms;
  while (!(await within(ms, what, check()))) {
    if (performance.now() > deadline) throw new Error(`${what} took more than ${ms} ms`);
    await sleep(1);
  }
}

/** Runs `work(0) … work(count - 1)` with at most `width` of them unanswered. */
export async function inFlight(count, width, work) {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, lane));
}
