/** Unreported jobs may take at most this share of the shortest reservation, at the limits of the last reports. */
const SHARE = 0.25;
/** How much the newest reports weigh in the limits. */
const WEIGHT = 0.3;

/**
 * How many unreported jobs a worker may have. Reservations run while jobs sit in a serial client's buffer, so it starts at
 * one and grows with each report while the unreported ones, at the limits of the reports, stay well below the shortest
 * reservation. Times are milliseconds.
 */
export class Window {
  #size = 1;
  #limits = 0;
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
    const limits = elapsed / count;
    this.#limits = this.#limits === 0 ? limits : this.#limits * (1 - WEIGHT) + limits * WEIGHT;
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
    if (this.#limits === 0 || this.#shortest === Number.POSITIVE_INFINITY) return;
    const most = Math.max(1, Math.floor((this.#shortest * SHARE) / this.#limits));
    if (most < this.#size) this.#size = most;
  }
}
