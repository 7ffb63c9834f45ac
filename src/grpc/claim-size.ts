/** What a job is taken for before one was seen. */
const GUESS = 16 * 1024;
const WEIGHT = 0.25;

/**
 * How many jobs may be claimed for a reader who may leave so many bytes lying. A claim asks for a number of jobs and their sizes are known
 * only after: so it goes by those that came last, at once when they grow and by and by when they shrink.
 */
export class ClaimSize {
  #size = GUESS;

  constructor(private readonly budget: number) {}

  /** Besides the bytes that lie already and the jobs that were asked for. */
  room(lying: number, asked: number): number {
    if (lying >= this.budget) return 0;
    return Math.ceil((this.budget - lying) / this.#size) - asked;
  }

  seen(jobs: number, bytes: number): void {
    const size = bytes / jobs;
    this.#size = size > this.#size ? size : this.#size + (size - this.#size) * WEIGHT;
  }
}
