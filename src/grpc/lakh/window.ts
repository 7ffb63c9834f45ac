/** Unreported jobs may take at most this share of the shortest reservation, at the recent time per report. */
const SHARE = 0.25;
/** Weight of the newest reports in the average time per report. */
const WEIGHT = 0.3;

/**
 * How many unreported jobs a worker may have. Reservations run while jobs wait in a serial client's buffer, so the window starts
 * at one and grows with each report, as long as the unreported jobs, at the average time per report, stay well below the shortest
 * reservation. Times are in milliseconds.
 */
export class Window {
  #size = 1;
  #msPerReport = 0;
  #shortest = Number.POSITIVE_INFINITY;

  constructor(private readonly most: number) {}

  get size(): number {
    return this.#size;
  }

  sent(reservation: number): void {
    if (reservation < this.#shortest) this.#shortest = reservation;
    this.#bound();
  }

  /** `count` reports arrived together, `elapsed` after the previous one or after the worker got something to do. */
  reported(count: number, elapsed: number, left: number): void {
    const msPerReport = elapsed / count;
    this.#msPerReport = this.#msPerReport === 0 ? msPerReport : this.#msPerReport * (1 - WEIGHT) + msPerReport * WEIGHT;
    this.#size = Math.min(this.most, this.#size + count);
    this.#bound();
    // Nothing is unreported: the next job brings its own reservation.
    if (left === 0) this.#shortest = Number.POSITIVE_INFINITY;
  }

  /** Reservations ended without a report. */
  expired(): void {
    this.#size = Math.max(1, Math.floor(this.#size / 2));
  }

  #bound(): void {
    if (this.#msPerReport === 0 || this.#shortest === Number.POSITIVE_INFINITY) return;
    const most = Math.max(1, Math.floor((this.#shortest * SHARE) / this.#msPerReport));
    if (most < this.#size) this.#size = most;
  }
}
