import { createHash } from 'node:crypto';
import type { Engine } from '../../engine/engine.js';
import type { Job } from '../../job/job.js';
import type { DeadGroup, DeadView } from '../api.js';
import type { QueueBoard } from './queue-board.js';

/** Dead jobs that are looked at for the groups, and how many milliseconds and bytes of payload that may take. */
const MOST_LOOKED_AT = 5_000;
const MOST_TIME = 300;
const MOST_BYTES = 64 * 1_048_576;
const PAGE = 100;
const MOST_GROUPS = 200;
/** Characters of an error that decide its group, and that are shown. */
const MOST_COMPARED = 300;
const MOST_SHOWN = 4_096;
/** How long, in milliseconds, to wait for a look at all queues. */
const PATIENCE = 200;

/** What differs between errors of the same kind: texts in quotes, ids, numbers. */
const VARYING =
  /"[^"\n]*"|'[^'\n]*'|`[^`\n]*`|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|\d+(?:\.\d+)*/gi;

/** The error with everything that varies replaced. */
export function patternOf(error: string | undefined): string {
  const [line = ''] = (error ?? '').slice(0, 4 * MOST_COMPARED).split('\n');
  return line.replace(VARYING, '…').slice(0, MOST_COMPARED);
}

/** Identifies the group of an error. */
export function groupKey(error: string | undefined): string {
  return createHash('sha256').update(patternOf(error)).digest('hex').slice(0, 16);
}

export async function deadView(engine: Engine, board: QueueBoard, queue: string | undefined): Promise<DeadView> {
  const glances = queue === undefined ? await board.glances(PATIENCE) : undefined;
  const counted = glances ?? [{ queue: queue!, counts: await engine.store.count(queue!) }];
  const queues = counted
    .map(({ queue: name, counts }) => ({ name, dead: counts.dead, dropped: counts.droppedDead ?? 0 }))
    .filter(({ dead, dropped }) => dead + dropped > 0);
  const groups = new Map<string, DeadGroup>();
  const looked = await lookThrough(engine, queues, (job) => addTo(groups, job));
  return {
    now: engine.store.now(),
    groups: [...groups.values()].sort((a, b) => b.count - a.count).slice(0, MOST_GROUPS),
    total: queues.reduce((sum, { dead }) => sum + dead, 0),
    looked,
    queues,
  };
}

/** The newest dead jobs of each queue, page by page in turn, as far as time and room allow. */
async function lookThrough(
  { store }: Engine,
  queues: readonly { name: string; dead: number }[],
  see: (job: Job) => void,
): Promise<number> {
  const end = performance.now() + MOST_TIME;
  let open = queues
    .filter(({ dead }) => dead > 0)
    .map(({ name }) => ({ name, cursor: undefined as string | undefined }));
  let [looked, bytes] = [0, 0];
  while (open.length > 0) {
    const rest: typeof open = [];
    for (const one of open) {
      if (looked >= MOST_LOOKED_AT || bytes > MOST_BYTES || performance.now() > end) return looked;
      const page = await store.list(one.name, { state: 'dead', limit: PAGE, cursor: one.cursor });
      for (const job of page.jobs) {
        see(job);
        bytes += job.payload.length;
      }
      looked += page.jobs.length;
      if (page.cursor !== undefined) rest.push({ name: one.name, cursor: page.cursor });
    }
    open = rest;
  }
  return looked;
}

function addTo(groups: Map<string, DeadGroup>, { queue, id, error = '', finishedAt = 0 }: Job): void {
  const key = groupKey(error);
  const group = groups.get(key);
  if (!group) {
    const newest = { queue, id, state: 'dead' as const };
    const queues = [{ name: queue, count: 1 }];
    const times = { firstAt: finishedAt, lastAt: finishedAt };
    groups.set(key, {
      key,
      pattern: patternOf(error),
      error: error.slice(0, MOST_SHOWN),
      count: 1,
      queues,
      newest,
      ...times,
    });
    return;
  }
  group.count += 1;
  const known = group.queues.find(({ name }) => name === queue);
  if (known) known.count += 1;
  else group.queues.push({ name: queue, count: 1 });
  group.firstAt = Math.min(group.firstAt, finishedAt);
  if (finishedAt <= group.lastAt) return;
  Object.assign(group, { lastAt: finishedAt, newest: { queue, id, state: 'dead' }, error: error.slice(0, MOST_SHOWN) });
}
