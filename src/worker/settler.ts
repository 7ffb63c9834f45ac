import { CroreError } from '../errors.js';
import type { Settlement, Store } from '../store/store.js';
import { RetryingBatches } from './retrying-batches.js';

/** Settlements that wait while the store does not answer; beyond it nothing more is claimed. */
const BACKLOG = 5_000;

/** Settles what a worker has done, in bulk. */
export class SettlementBatcher {
  readonly #batches: RetryingBatches<Settlement>;
  #abandoned = 0;

  constructor(
    private readonly store: Store,
    private readonly queue: string,
    private readonly onError: (error: Error, what: string) => void,
    settled: () => void,
    /** The store still counts what could not be reported as held by this worker. */
    gaveUp: () => void,
  ) {
    this.#batches = new RetryingBatches({
      send: (batch) => this.#settle(batch),
      failed: (error, count, givenUp) => {
        onError(error, `reporting ${count} outcomes of queue '${queue}'${givenUp ? ', given up' : ''}`);
        if (givenUp) gaveUp();
      },
      over: settled,
    });
  }

  report(settlement: Settlement): void {
    this.#batches.add(settlement);
  }

  /** So many settlements lie here that claiming more would only add to the pile. */
  get clogged(): boolean {
    return this.#batches.size > BACKLOG;
  }

  /** Tokens of what has been reported and not yet answered. */
  get tokens(): string[] {
    return this.#batches.items.map(({ lease }) => lease.token);
  }

  get busy(): boolean {
    return this.#batches.busy;
  }

  /** Outcomes of a session that is gone are not reported. */
  abandon(): void {
    this.#abandoned += 1;
    this.#batches.abandon();
  }

  /** The worker is closing: what fails is not repeated for long. */
  hurry(): void {
    this.#batches.hurry();
  }

  /** Resolves when everything has been reported, or given up after a few tries. */
  flushed(): Promise<void> {
    return this.#batches.flushed();
  }

  async #settle(batch: Settlement[]): Promise<void> {
    const before = this.#abandoned;
    const applied = await this.store.settle(this.queue, batch);
    const stale = applied.indexOf(false);
    if (stale < 0 || before !== this.#abandoned) return;
    const { lease } = batch[stale]!;
    const what = lease.id === undefined ? 'a task' : `job '${lease.id}'`;
    const error = new CroreError('LEASE_LOST', `the outcome of ${what} came too late and was refused`);
    this.onError(error, `queue '${this.queue}'`);
  }
}
