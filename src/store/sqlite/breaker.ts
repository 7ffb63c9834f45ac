import type { Outcome } from '../../job/transitions.js';
import type { Breaker, QueueSettings } from '../store.js';
import { type QueueCounters, type QueueRow, splitToken, type Tables } from './tables.js';

export function breakerOf({ breaker }: Pick<QueueRow, 'breaker'>): Breaker | undefined {
  return breaker === null ? undefined : (JSON.parse(breaker) as Breaker);
}

/** The part of the settings that is about the breaker. */
export function breakerSettings(row: QueueRow): Pick<QueueSettings, 'breaker' | 'breakerState'> {
  const breaker = breakerOf(row);
  if (!breaker) return {};
  return { breaker, breakerState: { failed: row.failed, ...(row.broken > 0 ? { until: row.broken } : {}) } };
}

/** Sets or removes the breaker. What it has counted stays if it was there before. */
export function setBreaker(tables: Tables, queue: number, breaker: Breaker | null): void {
  const text = breaker === null ? null : JSON.stringify({ failures: breaker.failures, pause: breaker.pause });
  tables.sql('UPDATE queues SET breaker = ? WHERE n = ?').run(text, queue);
  if (text === null) tables.sql(RESET).run(queue);
}

const RESET = 'UPDATE queues SET failed = 0, broken = 0, trial = NULL WHERE n = ?';

/** Closes the breaker by hand. */
export function closeBreaker(tables: Tables, counters: QueueCounters, now: number): void {
  if (counters.row.broken > 0) counters.event(now, 'breaker', '', 'closed');
  tables.sql(RESET).run(counters.queue);
}

/** The open breaker has let one entry through: the next one may follow after another pause, if this one decides nothing. */
export function letThrough(tables: Tables, { queue, row }: QueueCounters, token: string, now: number): number {
  const until = now + breakerOf(row)!.pause;
  tables.sql('UPDATE queues SET broken = ?, trial = ? WHERE n = ?').run(until, token, queue);
  return until;
}

/** Counts the outcomes of a call. While the breaker is open, only the entry that it let through decides. */
export class BreakerCount {
  readonly #breaker: Breaker | undefined;
  #failed: number;
  #until: number;
  #trial: string | null;
  readonly #events: ('open' | 'closed')[] = [];
  /** It has closed, so there may be work. */
  closed = false;

  constructor(
    private readonly tables: Tables,
    private readonly counters: QueueCounters,
    private readonly now: number,
  ) {
    const { row } = counters;
    this.#breaker = breakerOf(row);
    this.#failed = row.failed;
    this.#until = row.broken;
    this.#trial = row.trial;
  }

  /** Retries and dead jobs are failures; what was snoozed, released, lost or cancelled counts as neither. */
  settled(outcome: Outcome, token: string): void {
    if (!this.#breaker) return;
    if (outcome.to === 'done') this.succeeded(token);
    else if (outcome.to === 'dead' || (outcome.to === 'scheduled' && outcome.error !== undefined)) this.#fail(token);
  }

  succeeded(token: string): void {
    if (!this.#breaker) return;
    if (this.#until > 0 && !this.#isTrial(token)) return;
    if (this.#until > 0) {
      this.#events.push('closed');
      this.closed = true;
    }
    this.#failed = 0;
    this.#until = 0;
    this.#trial = null;
  }

  /** To be called after the events of the jobs. */
  write(): void {
    for (const event of this.#events) this.counters.event(this.now, 'breaker', '', event);
    const { row, queue } = this.counters;
    if (this.#failed === row.failed && this.#until === row.broken && this.#trial === row.trial) return;
    this.tables
      .sql('UPDATE queues SET failed = ?, broken = ?, trial = ? WHERE n = ?')
      .run(this.#failed, this.#until, this.#trial, queue);
  }

  #fail(token: string): void {
    const { failures, pause } = this.#breaker!;
    const isTrial = this.#until > 0 && this.#isTrial(token);
    if (this.#until > 0 && !isTrial) return;
    this.#failed += 1;
    if (!isTrial && this.#failed < failures) return;
    this.#until = this.now + pause;
    this.#trial = null;
    this.#events.push('open');
  }

  #isTrial(token: string): boolean {
    return this.#trial !== null && splitToken(token).nonce === this.#trial;
  }
}
