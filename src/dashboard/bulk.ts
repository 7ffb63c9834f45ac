import type { Engine } from '../engine/engine.js';
import { checkName, checkOneOf, checkOptions } from '../engine/input/check.js';
import { forEachMatching, type ResolvedFilter } from '../engine/input/filter.js';
import { checkMove, MOVABLE } from '../engine/queue/move.js';
import type { Job, State } from '../job/job.js';
import type { BulkAction, BulkProgress, JobFilter } from './api.js';
import { groupKey } from './views/dead.js';
import { filterOf } from './views/job/jobs.js';

/** The states that each action applies to. */
const STATES: Record<BulkAction['action'], readonly State[]> = {
  count: ['blocked', 'scheduled', 'ready', 'active', 'done', 'dead', 'cancelled'],
  retry: ['dead'],
  cancel: ['blocked', 'scheduled', 'ready', 'active'],
  remove: ['done', 'dead', 'cancelled'],
  move: MOVABLE,
};
/** How often progress is reported, in milliseconds. */
const REPORT_EVERY = 250;

interface Task {
  queues: string[];
  filter: ResolvedFilter;
  act: (queue: string, ids: string[]) => Promise<boolean[]>;
}

/** Checks everything before anything is changed. */
export async function bulkTask(engine: Engine, asked: unknown, by: string): Promise<Task> {
  checkOptions(asked, ['action', 'queue', 'filter', 'group', 'to'], 'bulk action');
  const { action, queue, filter, group, to } = asked as {
    action: BulkAction['action'];
    queue?: string;
    filter?: JobFilter;
    group?: string;
    to?: string;
  };
  checkOneOf(action, 'action', ['count', 'retry', 'cancel', 'remove', 'move']);
  const act = action === 'move' ? moving(engine, checkName(queue, 'queue name'), to, by) : actOf(engine, action, by);
  if (group !== undefined) {
    checkOneOf(action, 'action', ['count', 'retry', 'remove']);
    const key = checkName(group, 'group');
    const matches = ({ error }: Job) => groupKey(error) === key;
    const queues = queue === undefined ? await engine.store.queues() : [checkName(queue, 'queue name')];
    return { queues, filter: { states: ['dead'], matches }, act };
  }
  checkOptions(filter, ['state', 'id', 'text', 'group', 'after', 'before'], 'filter');
  return { queues: [checkName(queue, 'queue name')], filter: filterOf(filter!, STATES[action]), act };
}

function moving({ store }: Engine, queue: string, to: unknown, by: string): Task['act'] {
  const target = checkMove(queue, to);
  return async (from, ids) => (await store.move(from, ids, target, by)).map((outcome) => outcome === 'moved');
}

function actOf({ store }: Engine, action: BulkAction['action'], by: string): Task['act'] {
  if (action === 'retry') return (queue, ids) => store.rerun(queue, ids, ['dead'], by);
  if (action === 'cancel') return (queue, ids) => store.cancel(queue, ids, by);
  if (action === 'remove') return (queue, ids) => store.remove(queue, ids);
  return async (_queue, ids) => ids.map(() => true);
}

/** Does it step by step, and reports progress as lines of JSON; the reader ends it by going away. */
export function runBulk(
  engine: Engine,
  { queues, filter, act }: Task,
  done: (changed: number) => void,
): ReadableStream<Uint8Array> {
  const stop = new AbortController();
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async start(controller) {
      const total = { seen: 0, changed: 0 };
      let reportedAt = 0;
      const report = (progress: BulkProgress) => {
        if (!stop.signal.aborted) controller.enqueue(encoder.encode(`${JSON.stringify(progress)}\n`));
        reportedAt = performance.now();
      };
      try {
        for (const queue of queues) {
          const before = { ...total };
          const progress = (seen: number, changed: number) => {
            Object.assign(total, { seen: before.seen + seen, changed: before.changed + changed });
            if (performance.now() - reportedAt > REPORT_EVERY) report({ ...total, done: false });
          };
          await forEachMatching(engine, queue, filter, (ids) => act(queue, ids), { progress, signal: stop.signal });
        }
        report({ ...total, done: true });
      } catch (error) {
        report({ ...total, done: true, error: (error as Error).message });
      }
      done(total.changed);
      if (!stop.signal.aborted) controller.close();
    },
    cancel: () => stop.abort(),
  });
}
