import type { Engine } from '../../engine/engine.js';
import { ALL_QUEUES } from '../../engine/history/activity-recorder.js';
import { type Distribution, HISTORY_RANGES, type Interval, intervalAt, percentiles } from '../../store/history.js';
import type { HistoryPoint, HistoryRange, HistoryView, Percentiles } from '../api.js';

const PERCENTS = [50, 95, 99];

export async function historyView(
  { store }: Engine,
  queue: string | undefined,
  range: HistoryRange,
): Promise<HistoryView> {
  const { step, steps } = HISTORY_RANGES[range];
  const now = store.now();
  if (!store.history) return { now, range, kept: false, step, points: [] };
  const intervals = await store.history.read(queue ?? ALL_QUEUES, range);
  const found = new Map(intervals.map((interval) => [interval.at, interval]));
  const last = intervalAt(range, now) * step;
  const times = Array.from({ length: steps }, (_, i) => last - (steps - 1 - i) * step);
  return { now, range, kept: true, step, points: points(times, found, queue !== undefined) };
}

/** An interval without activity has the depth of the one before: nothing changed it. */
function points(times: readonly number[], found: ReadonlyMap<number, Interval>, withDepth: boolean): HistoryPoint[] {
  let depth: number | undefined;
  return times.map((at) => {
    const interval = found.get(at);
    depth = interval?.depth ?? depth;
    const { added = 0, done = 0, failed = 0, dead = 0, waits = {}, runs = {} } = interval ?? {};
    return {
      ...{ at, added, done, failed, dead },
      ...(depth === undefined || !withDepth ? {} : { depth }),
      ...spread('wait', waits),
      ...spread('run', runs),
    };
  });
}

function spread(name: 'wait' | 'run', distribution: Distribution): { [key in 'wait' | 'run']?: Percentiles } {
  const found = percentiles(distribution, PERCENTS)?.map((ms) => Math.round(ms * 100) / 100);
  return found ? { [name]: found as unknown as Percentiles } : {};
}
