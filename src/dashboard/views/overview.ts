import type { Engine } from '../../engine/engine.js';
import { STATES } from '../../job/job.js';
import type { Counts } from '../../store/store.js';
import type { OverviewParameters, OverviewView, QueueView } from '../api.js';
import { attentionTo, ofQueue } from './attention.js';
import type { FlowAttention } from './flow/flow-attention.js';
import { type Glance, MANY, type QueueBoard } from './queue-board.js';
import { schedulesOf } from './schedules.js';
import { workersOf } from './workers.js';

/** Queues on a page. */
export const PAGE = 50;
/** How long an answer waits for a look at all queues, in milliseconds; with many of them it would be in vain. */
const PATIENCE = 40;

export async function overview(
  engine: Engine,
  board: QueueBoard,
  { search = '', after }: OverviewParameters,
  trouble?: FlowAttention,
): Promise<OverviewView> {
  const flows = trouble?.now();
  const names = await board.names();
  const wanted = search.toLowerCase();
  const matching = wanted === '' ? names : names.filter((name) => name.toLowerCase().includes(wanted));
  const from = after === undefined ? 0 : firstAfter(matching, after);
  const page = matching.slice(from, from + PAGE);
  // One after the other: a look at ten thousand queues would delay the fifty of the page.
  const queues = await board.rows(page);
  const glances = await board.glances(names.length > MANY ? 0 : PATIENCE);
  return {
    now: engine.store.now(),
    attention: attentionTo(glances, engine.store.warnings, await flows),
    queues,
    total: names.length,
    matching: matching.length,
    more: from + PAGE < matching.length,
    counts: sumOf(glances),
    counted: glances.length,
  };
}

/** Names are sorted, but by code units on one store and by bytes on another: looking through them all is safe. */
function firstAfter(names: readonly string[], after: string): number {
  const found = names.indexOf(after);
  if (found >= 0) return found + 1;
  const next = names.findIndex((name) => name > after);
  return next < 0 ? names.length : next;
}

function sumOf(glances: readonly Glance[]): Counts {
  const sum = Object.fromEntries(STATES.map((state) => [state, 0])) as Counts;
  for (const { counts } of glances) for (const state of STATES) sum[state] += counts[state];
  return sum;
}

export async function queueView(engine: Engine, board: QueueBoard, name: string): Promise<QueueView> {
  const [names, queue, workers, schedules] = await Promise.all([
    board.names(),
    board.row(name),
    workersOf(engine, name),
    schedulesOf(engine, name),
  ]);
  const { oldest, counts, paused, brokenUntil, limits } = queue;
  const glance = { queue: name, at: 0, counts, paused, brokenUntil, limits, workers: queue.workers };
  return {
    now: engine.store.now(),
    known: names.includes(name),
    queue,
    attention: ofQueue({ ...glance, oldest, newlyDead: 0 }),
    workers,
    schedules,
  };
}
