/** Unreported jobs may take at most this share of the shortest reservation, at the pace of the last reports. */
const SHARE = 0.25;
/** How much the newest reports weigh in the pace. */
const WEIGHT = 0.3;

/**
 * How many unreported jobs a worker may have. Reservations run while jobs sit in a serial client's buffer, so it starts at
 * one and grows with each report while the unreported ones, at the pace of the reports, stay well below the shortest
 * reservation. Times are milliseconds.
 */
export class Window {
  #size = 1;
  #pace = 0;
  #shortest = Number.POSITIVE_INFINITY;

  constructor(private readonly most: number) {}

  get size(): number {
    return this.#size;
  }

  sent(reservation: number): void {
    if (reservation < this.#shortest) this.#shortest = reservation;
    this.#bound();
  }

  /** `count` reports came together, so long after the one before or after the worker got something to do. */
  reported(count: number, elapsed: number, left: number): void {
    const pace = elapsed / count;
    this.#pace = this.#pace === 0 ? pace : this.#pace * (1 - WEIGHT) + pace * WEIGHT;
    this.#size = Math.min(this.most, this.#size + count);
    this.#bound();
    // Nothing is out: what comes next brings its own reservation.
    if (left === 0) this.#shortest = Number.POSITIVE_INFINITY;
  }

  /** Reservations ended without a report. */
  expired(): void {
    this.#size = Math.max(1, Math.floor(this.#size / 2));
  }

  #bound(): void {
    if (this.#pace === 0 || this.#shortest === Number.POSITIVE_INFINITY) return;
    const most = Math.max(1, Math.floor((this.#shortest * SHARE) / this.#pace));
    if (most < this.#size) this.#size = most;
  }
}
