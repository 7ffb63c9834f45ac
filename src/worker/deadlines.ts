/** Tracks many deadlines with one timer instead of a timer per job. Times are monotonic. */
export class Deadlines<K> {
  readonly #ends = new Map<K, number>();
  #timer: NodeJS.Timeout | undefined;
  #next = Number.POSITIVE_INFINITY;

  constructor(private readonly expire: (key: K) => void) {}

  set(key: K, ms: number): void {
    const end = performance.now() + ms;
    this.#ends.set(key, end);
    if (end < this.#next) this.#arm(end);
  }

  delete(key: K): void {
    this.#ends.delete(key);
  }

  clear(): void {
    this.#ends.clear();
    clearTimeout(this.#timer);
    this.#next = Number.POSITIVE_INFINITY;
  }

  #arm(end: number): void {
    clearTimeout(this.#timer);
    this.#next = end;
    this.#timer = setTimeout(() => this.#fire(), Math.min(Math.max(0, end - performance.now()), 2 ** 31 - 1)).unref();
  }

  #fire(): void {
    const now = performance.now();
    const due = [...this.#ends].filter(([, end]) => end <= now).map(([key]) => key);
    for (const key of due) this.#ends.delete(key);
    this.#next = Number.POSITIVE_INFINITY;
    if (this.#ends.size > 0) this.#arm(Math.min(...this.#ends.values()));
    for (const key of due) this.expire(key);
  }
}
