import type { Claim, Store } from '../store/store.js';

/** Intervals of the fallback poll, in milliseconds: signals may be lost. They double while polls find nothing. */
const POLLS = { first: 5_000, longest: 60_000 };
/** The same where maintenance looks for entries that no signal has told of. */
const POLLS_BESIDE_LOOKS = { first: 60_000, longest: 300_000 };
/** Delay before retrying a failed claim. */
const ERROR_PAUSE = 200;
const LONGEST_TIMER = 2 ** 31 - 1;

/**
 * Decides when a claim is worth its round trip. Whatever claims from a queue has one: the library's worker, and a job server for
 * all workers that it has there.
 *
 *            signal, due time, slow poll, end of a pause
 *      dry ────────────────────────────────────────────▶ open
 *       ▲                                                  │ begin()
 *       │  no more entries, and no wake-up meanwhile       ▼
 *       └───────────────────────────────────────────── claiming ── more entries, or woken meanwhile ──▶ open
 *                                                          │ failed: open again after a pause
 */
export class ClaimTrigger {
  #poll: NodeJS.Timeout | undefined;
  readonly #polls: { first: number; longest: number };
  #pollMs: number;
  #dueTimer: NodeJS.Timeout | undefined;
  #pauseTimer: NodeJS.Timeout | undefined;
  #dry = false;
  /** The last claim left entries behind. */
  #more = false;
  #wakes = 0;
  #claims = 0;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(
    private readonly store: Store,
    /** Called when there may be something to claim. */
    private readonly open: () => void,
    /** For a worker: the process stays alive for it, and maintenance of its queue wakes it. */
    private readonly options: { isWorker?: boolean } = {},
  ) {
    this.#polls = options.isWorker && store.withReady ? POLLS_BESIDE_LOOKS : POLLS;
    this.#pollMs = this.#polls.first;
    this.#pollLater();
  }

  /** As far as is known, there is nothing to claim. */
  get dry(): boolean {
    return this.#dry;
  }

  /**
   * A claim may be sent now. While it is not known that there is much, one at a time: the server answers claims that arrive together at once, so that two
   * more that find nothing double the time until a single job starts.
   */
  get isOpen(): boolean {
    return !this.#dry && !this.#closed && this.#claims < (this.#more ? this.store.maxParallelClaims : 1);
  }

  get claims(): number {
    return this.#claims;
  }

  /** Called when new work may be available. */
  wake(): void {
    this.#pollMs = this.#polls.first;
    this.#wake();
  }

  #wake(): void {
    if (this.#closed) return;
    this.#wakes += 1;
    this.#dry = false;
    this.open();
  }

  /** Sends a claim and updates the state from its result. Rejects when the claim fails. */
  async claim(send: () => Promise<Claim>): Promise<Claim> {
    this.#claims += 1;
    const wakes = this.#wakes;
    try {
      const claim = await send();
      // A wake-up during the claim may be newer than this result, which then does not mark the queue as dry.
      if (claim.status !== 'lost') this.#dry = !claim.more && wakes === this.#wakes;
      this.#more = claim.more;
      if (claim.nextAt !== undefined) this.#wakeAt(claim.nextAt);
      return claim;
    } catch (error) {
      this.#dry = true;
      clearTimeout(this.#pauseTimer);
      this.#pauseTimer = setTimeout(() => this.wake(), ERROR_PAUSE).unref();
      throw error;
    } finally {
      this.#claims -= 1;
      if (this.#claims === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  /** Resolves when no claim is under way. */
  settled(): Promise<void> {
    if (this.#claims === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#poll);
    clearTimeout(this.#dueTimer);
    clearTimeout(this.#pauseTimer);
  }

  #pollLater(): void {
    this.#poll = setTimeout(() => {
      this.#pollMs = Math.min(2 * this.#pollMs, this.#polls.longest);
      this.#wake();
      this.#pollLater();
    }, this.#pollMs);
    if (!this.options.isWorker) this.#poll.unref();
  }

  #wakeAt(time: number): void {
    if (this.#closed) return;
    clearTimeout(this.#dueTimer);
    const wait = Math.min(Math.max(1, time - this.store.now()), LONGEST_TIMER);
    this.#dueTimer = setTimeout(() => this.wake(), wait).unref();
  }
}
