/** What the charts show of a history. */
import type { HistoryPoint, HistoryView } from '../../api.js';
import { compact } from '../lib/format.js';
import { duration } from '../lib/time.js';

export interface Line {
  label: string;
  /** The custom property with its colour. */
  colour: string;
  /** Lines differ by their dashes too. */
  dash?: number[];
  fill?: boolean;
  values: (number | null)[];
}

export interface ChartContent {
  title: string;
  times: number[];
  lines: Line[];
  format: (value: number) => string;
  /** Distances between the lines of the grid, where multiples of ten look odd. */
  steps?: number[];
}

export function rateChart({ points, step, now }: HistoryView): ChartContent {
  const shown = points.filter((point) => now - point.at >= step / 4);
  const perSecond = (value: number, at: number) => (value * 1_000) / Math.min(step, Math.max(1, now - at));
  const most = Math.max(0, ...shown.map(({ added, done, failed, at }) => perSecond(Math.max(added, done, failed), at)));
  const [factor, unit] = most < 1 ? [60, 'per minute'] : [1, 'per second'];
  const line = (
    label: keyof HistoryPoint & ('added' | 'done' | 'failed' | 'dead'),
    colour: string,
    dash?: number[],
  ) => ({
    label,
    colour,
    ...(dash ? { dash } : {}),
    values: shown.map((point) => perSecond(point[label], point.at) * factor),
  });
  return {
    title: `Jobs ${unit}`,
    times: shown.map(({ at }) => at),
    lines: [
      line('added', '--scheduled', [5, 3]),
      { ...line('done', '--done'), fill: true },
      line('failed', '--ready', [2, 2]),
      line('dead', '--dead', [8, 3, 2, 3]),
    ],
    format: amount,
  };
}

export function depthChart({ points }: HistoryView): ChartContent {
  const values = points.map(({ depth }) => depth ?? null);
  return {
    title: 'Waiting and active jobs',
    times: points.map(({ at }) => at),
    lines: [{ label: 'jobs', colour: '--active', fill: true, values }],
    format: amount,
  };
}

const PERCENTILES = [
  { label: 'p50', colour: '--done' },
  { label: 'p95', colour: '--ready', dash: [5, 3] },
  { label: 'p99', colour: '--dead', dash: [2, 2] },
];

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000] as const;
const TIME_STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 20, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 20, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 4, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 5, 10, 20, 50, 100, 365].map((days) => days * DAY),
];

export function timeChart({ points }: HistoryView, what: 'wait' | 'run', title: string): ChartContent {
  return {
    title,
    times: points.map(({ at }) => at),
    lines: PERCENTILES.map((line, index) => ({ ...line, values: points.map((point) => point[what]?.[index] ?? null) })),
    format: duration,
    steps: TIME_STEPS,
  };
}

function amount(value: number): string {
  if (value >= 100 || Number.isInteger(value)) return compact(value);
  return value.toFixed(value >= 10 ? 1 : 2).replace(/\.?0+$/, '');
}
