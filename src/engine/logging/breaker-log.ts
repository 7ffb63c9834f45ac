import type { Claim } from '../../store/store.js';
import type { Logger } from './failure-log.js';

const MOST_QUEUES = 10_000;

/** Logs that the breaker of a queue is open, once each time that it opens, as a claim of this process finds it. */
export class BreakerLog {
  /** Until when each queue was said to be stopped. */
  readonly #said = new Map<string, number>();

  constructor(private readonly logger: Logger | undefined) {}

  claimed(queue: string, { status, nextAt }: Claim): void {
    if (status !== 'paused' || nextAt === undefined || this.#said.get(queue) === nextAt) return;
    if (this.#said.size >= MOST_QUEUES) this.#said.clear();
    this.#said.set(queue, nextAt);
    const until = new Date(nextAt).toISOString();
    this.logger?.warn({ queue, until }, `the breaker of queue '${queue}' is open: nothing starts before ${until}`);
  }
}
