/** Assumed size of a job before any was seen. */
const GUESS = 16 * 1024;
const WEIGHT = 0.25;

/**
 * How many jobs to claim for a reader with a budget of unread bytes. A claim asks for a number of jobs, whose sizes are only
 * known afterwards, so the size is estimated from the latest jobs: it follows increases at once and decreases gradually.
 */
export class ClaimSize {
  #size = GUESS;

  constructor(private readonly budget: number) {}

  /** Room besides the unread bytes and the jobs already requested. */
  room(lying: number, asked: number): number {
    if (lying >= this.budget) return 0;
    return Math.ceil((this.budget - lying) / this.#size) - asked;
  }

  seen(jobs: number, bytes: number): void {
    const size = bytes / jobs;
    this.#size = size > this.#size ? size : this.#size + (size - this.#size) * WEIGHT;
  }
}
