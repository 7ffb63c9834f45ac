import { CroreError } from '../errors.js';
import { MAX_BATCH, type Settlement, type Store } from '../store/store.js';

const RETRY_PAUSE = 200;
/** Reports that wait while the store does not answer; beyond it nothing more is claimed. */
const BACKLOG = 5_000;

/** Reports outcomes in bulk, one batch per turn of the event loop, and again when the store did not answer. */
export class SettlementBatcher {
  #waiting: Settlement[] = [];
  #scheduled = false;
  readonly #batches = new Set<Settlement[]>();
  #idle: (() => void)[] = [];
  /** Results of an abandoned session are not reported. */
  #generation = 0;
  #tries = 10;

  constructor(
    private readonly store: Store,
    private readonly queue: string,
    private readonly onError: (error: Error, what: string) => void,
    private readonly settled: () => void,
    /** The store still counts what could not be reported as held by this worker. */
    private readonly gaveUp: () => void,
  ) {}

  report(settlement: Settlement): void {
    this.#waiting.push(settlement);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.flush());
  }

  /** So many reports lie here that claiming more would only add to the pile. */
  get clogged(): boolean {
    let pile = this.#waiting.length;
    for (const batch of this.#batches) pile += batch.length;
    return pile > BACKLOG;
  }

  /** Tokens of what has been reported and not yet answered. */
  get tokens(): string[] {
    return [this.#waiting, ...this.#batches].flat().map((settlement) => settlement.lease.token);
  }

  get busy(): boolean {
    return this.#batches.size > 0 || this.#waiting.length > 0;
  }

  abandon(): void {
    this.#generation += 1;
    this.#waiting = [];
    this.#checkIdle();
  }

  /** From now on a report that fails is not repeated for long: the worker is closing. */
  hurry(): void {
    this.#tries = 2;
  }

  /** Resolves when everything has been reported, or given up after a few tries. */
  async flushed(): Promise<void> {
    this.flush();
    if (!this.busy) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  flush(): void {
    this.#scheduled = false;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.length <= MAX_BATCH ? this.#waiting : this.#waiting.slice(0, MAX_BATCH);
      this.#waiting = batch === this.#waiting ? [] : this.#waiting.slice(MAX_BATCH);
      this.#batches.add(batch);
      void this.#send(batch, 1, this.#generation);
    }
  }

  async #send(batch: Settlement[], attempt: number, generation: number): Promise<void> {
    try {
      const applied = await this.store.settle(this.queue, batch);
      if (generation === this.#generation) this.#complain(batch, applied);
    } catch (error) {
      if (attempt < this.#tries && generation === this.#generation && !isClosed(error)) {
        this.onError(error as Error, `reporting ${batch.length} outcomes of queue '${this.queue}'`);
        await new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE * attempt));
        return this.#send(batch, attempt + 1, generation);
      }
      this.onError(error as Error, `reporting ${batch.length} outcomes of queue '${this.queue}', given up`);
      if (generation === this.#generation) this.gaveUp();
    }
    this.#batches.delete(batch);
    this.#checkIdle();
    this.settled();
  }

  #complain(batch: Settlement[], applied: boolean[]): void {
    const stale = applied.indexOf(false);
    if (stale < 0) return;
    const { lease } = batch[stale]!;
    const what = lease.id === undefined ? 'a task' : `job '${lease.id}'`;
    this.onError(
      new CroreError('LEASE_LOST', `the outcome of ${what} came too late and was refused`),
      `queue '${this.queue}'`,
    );
  }

  #checkIdle(): void {
    if (this.busy) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

function isClosed(error: unknown): boolean {
  return error instanceof CroreError && error.code === 'CLOSED';
}
