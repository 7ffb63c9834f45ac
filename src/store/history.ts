/** The history of a queue: what happened in it, added up by interval at three resolutions. */

/** How far back each range goes, in steps, and how long a step is in milliseconds. */
export const HISTORY_RANGES = {
  hour: { step: 60_000, steps: 60 },
  day: { step: 900_000, steps: 96 },
  month: { step: 21_600_000, steps: 120 },
} as const;
export type HistoryRange = keyof typeof HISTORY_RANGES;
export const RANGE_NAMES = Object.keys(HISTORY_RANGES) as HistoryRange[];

/** Number of values by bucket: see `bucketOf`. */
export type Distribution = Record<string, number>;

/** What happened in a queue during some time. */
export interface Activity {
  added: number;
  done: number;
  /** Attempts that failed or crashed, including the last one of a job that is dead. */
  failed: number;
  dead: number;
  /** From when a job could run to its claim, and how long handlers ran. */
  waits: Distribution;
  runs: Distribution;
}

/** The activity of one interval, and the waiting and active entries at the last time it was recorded. */
export interface Interval extends Activity {
  /** The beginning of the interval. */
  at: number;
  depth: number;
}

export function noActivity(): Activity {
  return { added: 0, done: 0, failed: 0, dead: 0, waits: {}, runs: {} };
}

/** Adds the second to the first. */
export function addActivity(to: Activity, more: Activity): void {
  to.added += more.added;
  to.done += more.done;
  to.failed += more.failed;
  to.dead += more.dead;
  addDistribution(to.waits, more.waits);
  addDistribution(to.runs, more.runs);
}

function addDistribution(to: Distribution, more: Distribution): void {
  for (const [bucket, count] of Object.entries(more)) to[bucket] = (to[bucket] ?? 0) + count;
}

/** Times are counted in sixteenths of a millisecond; longer than this is counted as this: more than a day. */
const UNITS_PER_MS = 16;
const LONGEST = 2 ** 31 - 1;

/** The bucket of a time in milliseconds. There are two buckets between a power of two and the next: it costs no logarithm. */
export function bucketOf(ms: number): number {
  const units = ms * UNITS_PER_MS;
  const whole = units >= LONGEST ? LONGEST : units | 0;
  if (whole < 2) return whole;
  const power = 31 - Math.clz32(whole);
  return 2 * power + ((whole >> (power - 1)) & 1);
}

/** The lower end of a bucket, in milliseconds. */
export function bucketStart(bucket: number): number {
  if (bucket < 2) return bucket / UNITS_PER_MS;
  const power = bucket >> 1;
  return (2 ** power * (bucket % 2 === 0 ? 1 : 1.5)) / UNITS_PER_MS;
}

/** Estimates percentiles, in milliseconds; undefined if there are no values. A bucket's values count as spread evenly over it. */
export function percentiles(distribution: Distribution, percents: readonly number[]): number[] | undefined {
  const buckets = Object.entries(distribution)
    .map(([bucket, count]) => [Number(bucket), count] as const)
    .sort(([a], [b]) => a - b);
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  return total === 0 ? undefined : percents.map((percent) => percentile(buckets, (total * percent) / 100));
}

function percentile(buckets: readonly (readonly [bucket: number, count: number])[], rank: number): number {
  let below = 0;
  for (const [bucket, count] of buckets) {
    if (below + count >= rank) {
      const [from, to] = [bucketStart(bucket), bucketStart(bucket + 1)];
      return from + (to - from) * ((rank - below) / count);
    }
    below += count;
  }
  return bucketStart(buckets.at(-1)![0] + 1);
}

/** The number of the interval that a time is in. */
export function intervalAt(range: HistoryRange, at: number): number {
  return Math.floor(at / HISTORY_RANGES[range].step);
}

/** The stored form of an interval, with short keys; the same on every store. */
interface Written {
  a: number;
  d: number;
  f: number;
  x: number;
  w: Distribution;
  r: Distribution;
  n?: number;
}

export function writeActivity({ added, done, failed, dead, waits, runs }: Activity, depth?: number): string {
  const written: Written = { a: added, d: done, f: failed, x: dead, w: waits, r: runs };
  return JSON.stringify(depth === undefined ? written : { ...written, n: depth });
}

export function readActivity(text: string): Activity & { depth: number } {
  const { a, d, f, x, w, r, n = 0 } = JSON.parse(text) as Written;
  return { added: a, done: d, failed: f, dead: x, waits: w, runs: r, depth: n };
}
