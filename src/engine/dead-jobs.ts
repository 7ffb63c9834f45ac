import type { Job } from '../job/job.js';
import type { Engine } from './engine.js';

/** Each queue's line has its newest job in memory; the pages behind it grow. */
const MOST = 32;

/** Dead jobs of these queues (all when undefined), newest first, for as long as somebody wants the next. */
export async function* deadJobs(engine: Engine, queues?: readonly string[]): AsyncGenerator<Job> {
  const { store } = engine;
  const lines: { page: Job[]; next: () => Promise<boolean> }[] = [];
  for (const queue of queues ?? (await store.queues())) {
    if ((await store.count(queue)).dead === 0) continue;
    const line = lineOf(engine, queue);
    if (await line.next()) lines.push(line);
  }
  while (lines.length > 0) {
    let newest = lines[0]!;
    for (const line of lines) if (endOf(line.page[0]!) > endOf(newest.page[0]!)) newest = line;
    yield newest.page.shift()!;
    if (newest.page.length === 0 && !(await newest.next())) lines.splice(lines.indexOf(newest), 1);
  }
}

function endOf(job: Job): number {
  return job.finishedAt ?? 0;
}

function lineOf({ store }: Engine, queue: string): { page: Job[]; next: () => Promise<boolean> } {
  let cursor: string | undefined;
  let over = false;
  let limit = 1;
  const line = {
    page: [] as Job[],
    async next(): Promise<boolean> {
      while (!over && line.page.length === 0) {
        const page = await store.list(queue, { state: 'dead', limit, cursor });
        limit = Math.min(2 * limit, MOST);
        line.page = page.jobs;
        cursor = page.cursor;
        over = cursor === undefined;
      }
      return line.page.length > 0;
    },
  };
  return line;
}
