import { CroreError } from '../errors.js';
import { MAX_BATCH } from '../store/store.js';

const RETRY_PAUSE = 200;
const TRIES = 10;

export interface RetryingBatchesSetup<T> {
  send: (batch: T[]) => Promise<void>;
  /** Called when a batch failed and is retried or given up. */
  failed: (error: Error, count: number, givenUp: boolean) => void;
  /** Called when a batch is finished, successfully or not. */
  over?: (batch: T[]) => void;
}

/** Sends the reports of one turn of the event loop together, and retries while the store does not answer. */
export class RetryingBatches<T> {
  readonly #batches = new Set<T[]>();
  #waiting: T[] = [];
  #scheduled = false;
  #tries = TRIES;
  /** Reports of an earlier generation are no longer retried. */
  #generation = 0;
  #idle: (() => void)[] = [];

  constructor(private readonly setup: RetryingBatchesSetup<T>) {}

  add(item: T): void {
    this.#waiting.push(item);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.flush());
  }

  get busy(): boolean {
    return this.#batches.size > 0 || this.#waiting.length > 0;
  }

  get size(): number {
    let size = this.#waiting.length;
    for (const batch of this.#batches) size += batch.length;
    return size;
  }

  /** Items without an answer so far. */
  get items(): T[] {
    return [this.#waiting, ...this.#batches].flat();
  }

  /** Drops everything unsent, and retries nothing that was sent. */
  abandon(): void {
    this.#generation += 1;
    this.#waiting = [];
    this.#checkIdle();
  }

  /** From now on, failures are only retried briefly. */
  hurry(): void {
    this.#tries = 2;
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

  /** Resolves when everything was sent, or given up after a few tries. */
  async flushed(): Promise<void> {
    this.flush();
    if (this.busy) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  async #send(batch: T[], attempt: number, generation: number): Promise<void> {
    try {
      await this.setup.send(batch);
    } catch (error) {
      const again = attempt < this.#tries && generation === this.#generation && !isClosed(error);
      if (again || generation === this.#generation) this.setup.failed(error as Error, batch.length, !again);
      if (again) {
        await new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE * attempt));
        return this.#send(batch, attempt + 1, generation);
      }
    }
    this.#batches.delete(batch);
    this.#checkIdle();
    this.setup.over?.(batch);
  }

  #checkIdle(): void {
    if (this.busy) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

function isClosed(error: unknown): boolean {
  return error instanceof CroreError && error.code === 'CLOSED';
}
