import type { Engine } from '../../engine/engine.js';
import type { FoundView, JobReference } from '../api.js';
import type { QueueBoard } from './queue-board.js';

/** Queues that are looked into together, and at most for one answer; and how long that may take, in milliseconds. */
const TOGETHER = 50;
const MOST_QUEUES = 10_000;
const MOST_TIME = 1_000;
/** Jobs that are found: ids are chosen by producers, and may be in every queue. */
const MOST_JOBS = 20;

/** The jobs with this id in any queue after `after`, as far as the limits allow. */
export async function findJobs(
  { store }: Engine,
  board: QueueBoard,
  id: string,
  after: string | undefined,
): Promise<FoundView> {
  const names = await board.names();
  const from = after === undefined ? 0 : names.indexOf(after) + 1;
  const last = Math.min(names.length, from + MOST_QUEUES);
  const end = performance.now() + MOST_TIME;
  const jobs: JobReference[] = [];
  let looked = from;
  while (looked < last && jobs.length < MOST_JOBS && performance.now() < end) {
    const some = names.slice(looked, looked + TOGETHER);
    const found = await Promise.all(some.map((name) => store.get(name, [id])));
    for (const [job] of found) if (job) jobs.push({ queue: job.queue, id: job.id, state: job.state });
    looked += some.length;
    await new Promise((resolve) => setImmediate(resolve));
  }
  const more = looked < names.length ? { after: names[looked - 1]! } : {};
  return { now: store.now(), jobs, queues: names.length, looked, ...more };
}
