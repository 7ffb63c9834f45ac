/** Counters and histograms of this process, by label values. */

/** Series per metric; further label values are counted together as `other`. */
const MOST_SERIES = 10_000;
const OTHER = 'other';
const SEPARATOR = '\0';

export interface Sample {
  /** Appended to the metric's name: `_bucket`, `_sum`, `_count`. */
  suffix?: string;
  labels: readonly (readonly [name: string, value: string])[];
  value: number;
}

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  samples(): Sample[];
}

/** Values by labels, bounded in number. */
class SeriesMap<T> {
  readonly #series = new Map<string, T>();

  constructor(
    private readonly labelNames: readonly string[],
    private readonly create: () => T,
  ) {}

  get(values: readonly string[]): T {
    const key = values.length === 1 ? values[0]! : values.join(SEPARATOR);
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    if (this.#series.size >= MOST_SERIES && values[0] !== OTHER) return this.get([OTHER, ...values.slice(1)]);
    const made = this.create();
    this.#series.set(key, made);
    return made;
  }

  *entries(): Generator<[labels: Sample['labels'], T]> {
    for (const [key, value] of this.#series) {
      const values = key.split(SEPARATOR);
      yield [this.labelNames.map((name, i) => [name, values[i] ?? ''] as const), value];
    }
  }
}

export class Counter implements Metric {
  readonly type = 'counter';
  readonly #series: SeriesMap<{ value: number }>;

  constructor(
    readonly name: string,
    readonly help: string,
    labelNames: readonly string[],
  ) {
    this.#series = new SeriesMap(labelNames, () => ({ value: 0 }));
  }

  add(by: number, ...labels: string[]): void {
    if (by > 0) this.#series.get(labels).value += by;
  }

  samples(): Sample[] {
    return [...this.#series.entries()].map(([labels, { value }]) => ({ labels, value }));
  }
}

interface Distribution {
  /** One more than there are bounds: the last one is for everything above. */
  counts: number[];
  sum: number;
}

export class Histogram implements Metric {
  readonly type = 'histogram';
  readonly #series: SeriesMap<Distribution>;

  constructor(
    readonly name: string,
    readonly help: string,
    labelNames: readonly string[],
    /** Upper bounds in seconds, ascending. */
    private readonly bounds: readonly number[],
  ) {
    this.#series = new SeriesMap(labelNames, () => ({ counts: new Array(bounds.length + 1).fill(0), sum: 0 }));
  }

  observe(seconds: number, ...labels: string[]): void {
    this.recorder(...labels)(seconds);
  }

  /** Records values with these labels: one look-up for many of them. */
  recorder(...labels: string[]): (seconds: number) => void {
    const series = this.#series.get(labels);
    const { bounds } = this;
    return (seconds) => {
      let i = 0;
      while (i < bounds.length && seconds > bounds[i]!) i++;
      series.counts[i]! += 1;
      series.sum += seconds;
    };
  }

  samples(): Sample[] {
    return [...this.#series.entries()].flatMap(([labels, { counts, sum }]) => {
      let count = 0;
      const buckets = counts.map((one, i) => {
        count += one;
        const bound = i < this.bounds.length ? String(this.bounds[i]) : '+Inf';
        return { suffix: '_bucket', labels: [...labels, ['le', bound] as const], value: count };
      });
      return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: count }];
    });
  }
}
