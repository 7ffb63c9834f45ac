import type { Job } from '../job/job.js';
import type { Engine } from './engine.js';

/** Maximum page size. Each queue starts with one job in memory; its pages then grow up to this. */
const MOST = 32;

/** Yields the dead jobs of these queues (of all queues when undefined), newest first, reading pages only as needed. */
export async function* deadJobs(engine: Engine, queues?: readonly string[]): AsyncGenerator<Job> {
  const { store } = engine;
  const queuesWithDead: { page: Job[]; next: () => Promise<boolean> }[] = [];
  for (const queue of queues ?? (await store.queues())) {
    if ((await store.count(queue)).dead === 0) continue;
    const pages = pagesOf(engine, queue);
    if (await pages.next()) queuesWithDead.push(pages);
  }
  while (queuesWithDead.length > 0) {
    let newest = queuesWithDead[0]!;
    for (const pages of queuesWithDead) if (endOf(pages.page[0]!) > endOf(newest.page[0]!)) newest = pages;
    yield newest.page.shift()!;
    if (newest.page.length === 0 && !(await newest.next())) queuesWithDead.splice(queuesWithDead.indexOf(newest), 1);
  }
}

function endOf(job: Job): number {
  return job.finishedAt ?? 0;
}

function pagesOf({ store }: Engine, queue: string): { page: Job[]; next: () => Promise<boolean> } {
  let cursor: string | undefined;
  let over = false;
  let limit = 1;
  const pages = {
    page: [] as Job[],
    async next(): Promise<boolean> {
      while (!over && pages.page.length === 0) {
        const page = await store.list(queue, { state: 'dead', limit, cursor });
        limit = Math.min(2 * limit, MOST);
        pages.page = page.jobs;
        cursor = page.cursor;
        over = cursor === undefined;
      }
      return pages.page.length > 0;
    },
  };
  return pages;
}
