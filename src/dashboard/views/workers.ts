import type { Engine } from '../../engine/engine.js';
import type { Job } from '../../job/job.js';
import type { WorkerRow, WorkersView } from '../api.js';

/** Jobs that are shown for a worker, active jobs that are looked through for them, and workers and queues that are looked at. */
const MOST_JOBS = 20;
const MOST_ACTIVE = 500;
const MOST_WORKERS = 500;
const MOST_QUEUES = 2_000;
const TOGETHER = 50;

export async function workersView(engine: Engine, queue: string | undefined): Promise<WorkersView> {
  const names = queue === undefined ? await engine.store.queues() : [queue];
  const workers: WorkerRow[] = [];
  let looked = 0;
  for (; looked < Math.min(names.length, MOST_QUEUES) && workers.length <= MOST_WORKERS; looked += TOGETHER) {
    const some = names.slice(looked, looked + TOGETHER);
    workers.push(...(await Promise.all(some.map((name) => workersOf(engine, name)))).flat());
  }
  const more = looked < names.length || workers.length > MOST_WORKERS;
  return { now: engine.store.now(), workers: workers.slice(0, MOST_WORKERS), more };
}

/** The workers of a queue and what they hold. */
export async function workersOf({ store }: Engine, queue: string): Promise<WorkerRow[]> {
  const workers = await store.workers(queue);
  if (workers.length === 0) return [];
  const { jobs } = await store.list(queue, { state: 'active', limit: MOST_ACTIVE });
  const held = byWorker(jobs);
  return workers.map(({ id, deadline, holds, info }) => ({
    queue,
    id,
    ...described(info),
    deadline,
    holds,
    jobs: (held.get(id) ?? [])
      .slice(0, MOST_JOBS)
      .map((job) => ({ id: job.id, attempt: job.attempt, ...(job.startedAt ? { startedAt: job.startedAt } : {}) })),
  }));
}

function byWorker(jobs: readonly Job[]): Map<string | undefined, Job[]> {
  const groups = new Map<string | undefined, Job[]>();
  for (const job of jobs) groups.set(job.worker, [...(groups.get(job.worker) ?? []), job]);
  return groups;
}

/** What a worker says of itself is up to its author: only what has the right type is shown. */
function described(info: string): Pick<WorkerRow, 'host' | 'pid' | 'concurrency' | 'since'> {
  let said: Record<string, unknown>;
  try {
    said = Object(JSON.parse(info)) as Record<string, unknown>;
  } catch {
    return {};
  }
  const { host, pid, concurrency, since } = said;
  return {
    ...(typeof host === 'string' ? { host: host.slice(0, 200) } : {}),
    ...(typeof pid === 'number' ? { pid } : {}),
    ...(typeof concurrency === 'number' ? { concurrency } : {}),
    ...(typeof since === 'number' ? { since } : {}),
  };
}
