import { CroreError } from '../errors.js';
import type { Settlement, Store } from '../store/store.js';
import { RetryingBatches } from './retrying-batches.js';

/** How many settlements may wait while the store does not answer; above this, nothing more is claimed. */
const BACKLOG = 5_000;

/** Settles a worker's entries in batches. */
export class SettlementBatcher {
  readonly #batches: RetryingBatches<Settlement>;
  #abandoned = 0;

  constructor(
    private readonly store: Store,
    private readonly queue: string,
    private readonly onError: (error: Error, what: string) => void,
    settled: () => void,
    /** Called with what the store has answered. */
    private readonly answered: (batch: Settlement[], applied: boolean[]) => void,
    /** Called when settlements were given up: the store still counts their entries as held by this worker. */
    gaveUp: () => void,
  ) {
    this.#batches = new RetryingBatches({
      send: (batch) => this.#settle(batch),
      failed: (error, count, givenUp) => {
        onError(error, `reporting ${count} outcomes of queue '${queue}'${givenUp ? ', giving up' : ''}`);
        if (givenUp) gaveUp();
      },
      over: settled,
    });
  }

  report(settlement: Settlement): void {
    this.#batches.add(settlement);
  }

  /** So many settlements are waiting that claiming more would only add to the backlog. */
  get clogged(): boolean {
    return this.#batches.size > BACKLOG;
  }

  /** Tokens of the settlements without an answer so far. */
  get tokens(): string[] {
    return this.#batches.items.map(({ lease }) => lease.token);
  }

  get busy(): boolean {
    return this.#batches.busy;
  }

  /** Drops the outcomes of a session that is gone. */
  abandon(): void {
    this.#abandoned += 1;
    this.#batches.abandon();
  }

  /** The worker is closing: failures are only retried briefly. */
  hurry(): void {
    this.#batches.hurry();
  }

  /** Resolves when everything was reported, or given up after a few tries. */
  flushed(): Promise<void> {
    return this.#batches.flushed();
  }

  async #settle(batch: Settlement[]): Promise<void> {
    const before = this.#abandoned;
    const applied = await this.store.settle(this.queue, batch);
    this.answered(batch, applied);
    const stale = applied.indexOf(false);
    if (stale < 0 || before !== this.#abandoned) return;
    const { lease } = batch[stale]!;
    const what = lease.id === undefined ? 'a task' : `job '${lease.id}'`;
    const error = new CroreError('LEASE_LOST', `the outcome of ${what} was reported too late and rejected`);
    this.onError(error, `queue '${this.queue}'`);
  }
}
