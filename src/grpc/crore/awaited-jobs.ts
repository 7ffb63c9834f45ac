/** Waiting clients ask again every second: an id not asked for in this time is no longer awaited. */
const TTL = 10_000;
const MOST = 100_000;

/** Ids of jobs that a client of this server waits for: only the ends of these are sent. */
export class AwaitedJobs {
  readonly #until = new Map<string, number>();

  add(queue: string, ids: readonly string[]): void {
    const until = performance.now() + TTL;
    for (const id of ids) {
      const key = `${queue}\0${id}`;
      this.#until.delete(key); // re-inserted at the end, so that the first entry is always the oldest
      this.#until.set(key, until);
    }
    this.#forget();
  }

  has(queue: string, id: string): boolean {
    return this.#until.has(`${queue}\0${id}`);
  }

  #forget(): void {
    const now = performance.now();
    for (const [key, until] of this.#until) {
      if (until > now && this.#until.size <= MOST) return;
      this.#until.delete(key);
    }
  }
}
