import type { Engine } from '../engine/engine.js';

/** The queue that is queried to check whether the store answers. */
const PROBED = 'health';
/** Queues that are looked at. */
const MOST_QUEUES = 1_000;
/** How long a look at the queues is good for, in milliseconds. */
const FRESH = 5_000;

/** Says why the server should get no calls: undefined if it should. */
export class Readiness {
  #lookedAt = Number.NEGATIVE_INFINITY;
  #stuck: string | undefined;

  constructor(
    private readonly engine: Engine,
    /** A due job of a queue with workers must not be older than this; 0: any age will do. */
    private readonly maxAge: number,
  ) {}

  async problem(): Promise<string | undefined> {
    try {
      await this.engine.store.settings(PROBED);
      if (this.maxAge > 0 && performance.now() - this.#lookedAt > FRESH) {
        this.#stuck = await this.#findStuck();
        this.#lookedAt = performance.now();
      }
    } catch {
      return 'the store does not answer';
    }
    return this.#stuck;
  }

  async #findStuck(): Promise<string | undefined> {
    for (const queue of (await this.engine.store.queues()).slice(0, MOST_QUEUES)) {
      const age = await this.#ageOf(queue);
      if (age > this.maxAge)
        return `queue '${queue}' has workers, but its next job has been due for ${Math.round(age / 1_000)} s`;
    }
    return undefined;
  }

  /** The age of the next job of a queue that is being worked on; 0 for all others. */
  async #ageOf(queue: string): Promise<number> {
    const { store } = this.engine;
    const [next] = (await store.list(queue, { state: 'ready', limit: 1 })).jobs;
    if (!next || (await store.settings(queue)).paused) return 0;
    const isWorkedOn = (await store.workers(queue)).some(({ deadline }) => deadline > store.now());
    return isWorkedOn ? store.now() - (next.runAt ?? next.createdAt) : 0;
  }
}
