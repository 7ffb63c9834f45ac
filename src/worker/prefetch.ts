/** Handler time, in milliseconds per slot, that may lie claimed ahead. */
const AHEAD = 5;
const MOST = 1_000;
const WEIGHT = 0.05;

/**
 * How many entries to claim beyond what can run. Fast handlers are fed ahead, for a round trip costs more than they do;
 * slow ones get nothing ahead, so that other workers can have it.
 */
export class Prefetch {
  #average: number | undefined;
  #most: number;

  constructor(private readonly concurrency: number) {
    this.#most = Math.min(MOST - Math.min(concurrency, MOST - 1), Math.max(512, 8 * concurrency));
  }

  /** A handler took this many milliseconds. */
  took(ms: number): void {
    this.#average = this.#average === undefined ? ms : this.#average + (ms - this.#average) * WEIGHT;
  }

  /** What was claimed ahead has to wait: nothing more for now. */
  stalled(ms: number): void {
    this.#average = Math.max(this.#average ?? 0, ms);
  }

  get ahead(): number {
    if (this.#average === undefined) return 0;
    return Math.min(this.#most, Math.floor((this.concurrency * AHEAD) / Math.max(this.#average, 0.001)));
  }
}
