/** How much handler time to claim ahead, in milliseconds per slot. */
const AHEAD = 5;
/** How many bytes of payload to claim ahead. */
const BYTES_AHEAD = 8 * 1024 * 1024;
const MOST = 1_000;
const WEIGHT = 0.05;

/**
 * How many entries to claim beyond what can run now. Fast handlers get entries ahead, because a round trip takes longer than they
 * do; slow handlers get none, so that other workers can claim them.
 */
export class Prefetch {
  #average: number | undefined;
  #size = 0;
  #most: number;

  constructor(private readonly concurrency: number) {
    this.#most = Math.min(MOST - Math.min(concurrency, MOST - 1), Math.max(512, 8 * concurrency));
  }

  /** Records how long a handler took, in milliseconds. */
  took(ms: number): void {
    this.#average = this.#average === undefined ? ms : this.#average + (ms - this.#average) * WEIGHT;
  }

  /** Records how many entries arrived, and how many bytes of payload. */
  brought(entries: number, bytes: number): void {
    if (entries > 0) this.#size += (bytes / entries - this.#size) * 0.5;
  }

  /** Entries claimed ahead have to wait, so no more are claimed ahead for now. */
  stalled(ms: number): void {
    this.#average = Math.max(this.#average ?? 0, ms);
  }

  get ahead(): number {
    if (this.#average === undefined) return 0;
    const byTime = (this.concurrency * AHEAD) / Math.max(this.#average, 0.001);
    return Math.floor(Math.min(this.#most, byTime, BYTES_AHEAD / Math.max(this.#size, 1)));
  }
}
