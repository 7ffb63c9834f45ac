import type { Outcome } from '../../dist/job/transitions.js';
import type { Breaker, BreakerState } from '../../dist/store/store.js';
import type { EventLog } from './event-log.js';

/** The part of the model for the breaker: how many attempts have failed in a row, and until when nothing is given out. */
export class BreakerModel {
  set: Breaker | undefined;
  #failed = 0;
  #until = 0;
  /** The lease of the entry that the open breaker let through. */
  #trial: string | undefined;
  #events: ('open' | 'closed')[] = [];

  constructor(
    private readonly clock: () => number,
    private readonly log: EventLog,
  ) {}

  get state(): BreakerState | undefined {
    return this.set && { failed: this.#failed, ...(this.#until > 0 ? { until: this.#until } : {}) };
  }

  /** Until when nothing is given out, if that is in the future. */
  get openUntil(): number | undefined {
    return this.#until > this.clock() ? this.#until : undefined;
  }

  /** Only one entry may be claimed. */
  get single(): boolean {
    return this.#until > 0;
  }

  configure(breaker: Breaker | null): void {
    this.set = breaker ?? undefined;
    if (breaker === null) this.#reset();
  }

  /** Closed by hand. */
  close(): void {
    if (this.#until > 0) this.#events.push('closed');
    this.#reset();
  }

  /** Events of the breaker come after those of the jobs. */
  tell(): void {
    for (const event of this.#events) this.log.tell('breaker', '', event);
    this.#events = [];
  }

  letThrough(token: string): number {
    this.#until = this.clock() + this.set!.pause;
    this.#trial = token;
    return this.#until;
  }

  settled(move: Outcome, token: string): void {
    if (move.to === 'done') this.succeeded(token);
    else if (move.to === 'dead' || (move.to === 'scheduled' && move.error !== undefined)) this.#failedOnce(token);
  }

  succeeded(token: string | undefined): void {
    if (!this.set || (this.#until > 0 && !this.#isTrial(token))) return;
    this.close();
  }

  #failedOnce(token: string): void {
    if (!this.set || (this.#until > 0 && !this.#isTrial(token))) return;
    this.#failed += 1;
    if (this.#until === 0 && this.#failed < this.set.failures) return;
    this.#until = this.clock() + this.set.pause;
    this.#trial = undefined;
    this.#events.push('open');
  }

  /** A job that nobody holds any more has no token, and decides nothing. */
  #isTrial(token: string | undefined): boolean {
    return token !== undefined && token === this.#trial;
  }

  #reset(): void {
    this.#failed = 0;
    this.#until = 0;
    this.#trial = undefined;
  }
}
