import type { Claim, Store } from '../store/store.js';

/** A queue is looked at this often without any reason, in milliseconds: signals may be lost. */
const SLOW_POLL = 5_000;
/** Until a claim that failed is tried again. */
const ERROR_PAUSE = 200;
const LONGEST_TIMER = 2 ** 31 - 1;

/**
 * Knows when a claim is worth its round trip. Whoever claims from a queue has one: the worker of the library, the dispatcher of the lakh
 * protocol, a queue of a crore.v1 stream.
 *
 *            signal, due time, slow poll, end of a pause
 *      dry ────────────────────────────────────────────▶ open
 *       ▲                                                  │ begin()
 *       │  no more entries, and no wake came meanwhile     ▼
 *       └───────────────────────────────────────────── claiming ── more entries, or woken meanwhile ──▶ open
 *                                                          │ failed: open again after a pause
 */
export class ClaimTrigger {
  readonly #poll: NodeJS.Timeout;
  #dueTimer: NodeJS.Timeout | undefined;
  #pauseTimer: NodeJS.Timeout | undefined;
  #dry = false;
  #wakes = 0;
  #claims = 0;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(
    private readonly store: Store,
    /** There may be something to claim. */
    private readonly open: () => void,
    /** Somebody works here: the process stays for that. */
    { keepsProcess = false } = {},
  ) {
    this.#poll = setInterval(() => this.wake(), SLOW_POLL);
    if (!keepsProcess) this.#poll.unref();
  }

  /** Nothing is there to be claimed, as far as is known. */
  get dry(): boolean {
    return this.#dry;
  }

  /** A claim may be sent now. */
  get isOpen(): boolean {
    return !this.#dry && !this.#closed && this.#claims < this.store.maxParallelClaims;
  }

  get claims(): number {
    return this.#claims;
  }

  /** Something may have come. */
  wake(): void {
    if (this.#closed) return;
    this.#wakes += 1;
    this.#dry = false;
    this.open();
  }

  /** Runs a claim and draws the conclusions from its answer. A claim that fails rejects. */
  async claim(send: () => Promise<Claim>): Promise<Claim> {
    this.#claims += 1;
    const wakes = this.#wakes;
    try {
      const claim = await send();
      // A wake may have overtaken this answer: then it does not say the last word.
      if (claim.status !== 'lost') this.#dry = !claim.more && wakes === this.#wakes;
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
    clearInterval(this.#poll);
    clearTimeout(this.#dueTimer);
    clearTimeout(this.#pauseTimer);
  }

  #wakeAt(time: number): void {
    if (this.#closed) return;
    clearTimeout(this.#dueTimer);
    const wait = Math.min(Math.max(1, time - this.store.now()), LONGEST_TIMER);
    this.#dueTimer = setTimeout(() => this.wake(), wait).unref();
  }
}
