/** Handler time, in milliseconds per slot, that may lie claimed ahead. */
const AHEAD = 5;
/** Bytes of payload that may lie claimed ahead. */
const BYTES_AHEAD = 8 * 1024 * 1024;
const MOST = 1_000;
const WEIGHT = 0.05;

/**
 * How many entries to claim beyond what can run. Fast handlers are fed ahead, for a round trip costs more than they do;
 * slow ones get nothing ahead, so that other workers can have it.
 */
export class Prefetch {
  #average: number | undefined;
  #size = 0;
  #most: number;

  constructor(private readonly concurrency: number) {
    this.#most = Math.min(MOST - Math.min(concurrency, MOST - 1), Math.max(512, 8 * concurrency));
  }

  /** A handler took this many milliseconds. */
  took(ms: number): void {
    this.#average = this.#average === undefined ? ms : this.#average + (ms - this.#average) * WEIGHT;
  }

  /** So many entries came, with so many bytes of payload. */
  brought(entries: number, bytes: number): void {
    if (entries > 0) this.#size += (bytes / entries - this.#size) * 0.5;
  }

  /** What was claimed ahead has to wait: nothing more for now. */
  stalled(ms: number): void {
    this.#average = Math.max(this.#average ?? 0, ms);
  }

  get ahead(): number {
    if (this.#average === undefined) return 0;
    const byTime = (this.concurrency * AHEAD) / Math.max(this.#average, 0.001);
    return Math.floor(Math.min(this.#most, byTime, BYTES_AHEAD / Math.max(this.#size, 1)));
  }
}
