import { monitorEventLoopDelay } from 'node:perf_hooks';
import { STATES } from '../../job/job.js';
import type { Engine } from '../engine.js';
import type { Metric, Sample } from './series.js';

/** Queues whose depth is looked up; the others are only counted. */
const MOST_QUEUES = 2_000;
/** Look-ups under way at once. */
const TOGETHER = 50;

/** The event loop is watched from the first look on. */
let loopDelay: ReturnType<typeof monitorEventLoopDelay> | undefined;

/** All metrics: what this process has counted, and what the store says now. */
export async function collect(engine: Engine): Promise<Metric[]> {
  const names = await engine.store.queues();
  const looked = names.slice(0, MOST_QUEUES);
  const found: QueueState[] = [];
  for (let i = 0; i < looked.length; i += TOGETHER)
    found.push(...(await Promise.all(looked.slice(i, i + TOGETHER).map((name) => look(engine, name)))));
  return [...gauges(found, names.length), ...engine.metrics.all, ...eventLoop()];
}

interface QueueState {
  queue: string;
  counts: Record<string, number>;
  workers: number;
  paused: boolean;
  broken: boolean;
  oldest: number;
  droppedDead: number;
}

async function look({ store }: Engine, queue: string): Promise<QueueState> {
  const [counts, workers, settings, next] = await Promise.all([
    store.count(queue),
    store.workers(queue),
    store.settings(queue),
    store.list(queue, { state: 'ready', limit: 1 }),
  ]);
  const [first] = next.jobs;
  const oldest = first ? Math.max(0, store.now() - (first.runAt ?? first.createdAt)) / 1_000 : 0;
  const { droppedDead = 0 } = counts;
  const { paused, breakerState } = settings;
  const broken = breakerState?.until !== undefined;
  return { queue, counts, workers: workers.length, paused, broken, oldest, droppedDead };
}

function gauges(found: readonly QueueState[], total: number): Metric[] {
  const by = (name: string, help: string, value: (one: QueueState) => number, type: 'gauge' | 'counter' = 'gauge') =>
    metric(
      name,
      help,
      type,
      found.map((one) => ({ labels: [['queue', one.queue]], value: value(one) })),
    );
  const depths = found.flatMap(({ queue, counts }) =>
    STATES.map(
      (state): Sample => ({
        labels: [
          ['queue', queue],
          ['state', state],
        ],
        value: counts[state]!,
      }),
    ),
  );
  return [
    metric('crore_jobs', 'Entries by state; raw tasks count as ready or active.', 'gauge', depths),
    by('crore_oldest_ready_seconds', 'Age of the next job to run.', ({ oldest }) => oldest),
    by('crore_workers', 'Sessions of workers.', ({ workers }) => workers),
    by('crore_paused', '1 if the queue is paused.', ({ paused }) => (paused ? 1 : 0)),
    by('crore_queue_breaker_open', '1 if the breaker of the queue is open.', ({ broken }) => (broken ? 1 : 0)),
    by(
      'crore_dropped_dead_total',
      'Dead jobs dropped because there were too many.',
      (one) => one.droppedDead,
      'counter',
    ),
    metric('crore_queues', 'Queues in the store.', 'gauge', [{ labels: [], value: total }]),
  ];
}

function eventLoop(): Metric[] {
  if (!loopDelay) {
    loopDelay = monitorEventLoopDelay({ resolution: 20 });
    loopDelay.enable();
  }
  const seconds = (percent: number) => {
    const ns = loopDelay!.percentile(percent);
    return Number.isFinite(ns) ? ns / 1e9 : 0;
  };
  const found = [50, 99].map((percent) =>
    metric(
      `crore_event_loop_delay_p${percent}_seconds`,
      `Delay of the event loop since the last look, percentile ${percent}.`,
      'gauge',
      [{ labels: [], value: seconds(percent) }],
    ),
  );
  loopDelay.reset();
  return found;
}

function metric(name: string, help: string, type: Metric['type'], samples: Sample[]): Metric {
  return { name, help, type, samples: () => samples };
}
