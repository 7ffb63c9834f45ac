import type { Engine } from '../../engine/engine.js';
import { report, type TokenlessReport } from '../../engine/tokenless-report.js';
import { MAX_BATCH, type Settlement } from '../../store/store.js';
import type { Log } from '../context.js';

const TRIES = 10;
const PAUSE = 200;

/** A settlement with the report behind it, for the case that its token is no longer the one. */
export interface Reported extends Settlement {
  report?: TokenlessReport;
}

/**
 * Carries what workers report to the store, one batch per turn of the event loop. Where the token is at hand the report
 * is an ordinary settlement; where it is not, or has been overtaken, it goes the tokenless way.
 */
export class Reporter {
  #settlements: Reported[] = [];
  #reports: TokenlessReport[] = [];
  #scheduled = false;
  #under = 0;
  #idle: (() => void)[] = [];

  constructor(
    private readonly engine: Engine,
    private readonly queue: string,
    private readonly log: Log,
  ) {}

  settle(settlement: Reported): void {
    this.#settlements.push(settlement);
    this.#soon();
  }

  report(one: TokenlessReport): void {
    this.#reports.push(one);
    this.#soon();
  }

  /** Resolves when everything has reached the store or was given up. */
  flushed(): Promise<void> {
    this.#flush();
    if (this.#under === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #soon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#flush());
  }

  /** Settlements first: a job that is done because it was sent must be so before a report about it is read. */
  #flush(): void {
    this.#scheduled = false;
    for (let i = 0; i < this.#settlements.length; i += MAX_BATCH) {
      const batch = this.#settlements.slice(i, i + MAX_BATCH);
      this.#carry(batch.length, () => this.#settle(batch));
    }
    for (let i = 0; i < this.#reports.length; i += MAX_BATCH) {
      const batch = this.#reports.slice(i, i + MAX_BATCH);
      this.#carry(batch.length, () => report(this.engine, this.queue, batch));
    }
    this.#settlements = [];
    this.#reports = [];
  }

  async #settle(batch: Reported[]): Promise<void> {
    const applied = await this.engine.store.settle(this.queue, batch);
    const overtaken = batch.filter((one, i) => !applied[i] && one.report).map((one) => one.report!);
    if (overtaken.length > 0) await report(this.engine, this.queue, overtaken);
  }

  async #carry(count: number, work: () => Promise<unknown>): Promise<void> {
    this.#under += 1;
    for (let attempt = 1; ; attempt++) {
      try {
        await work();
        break;
      } catch (error) {
        if (attempt === TRIES) {
          this.log.error({ err: error, queue: this.queue, count }, 'reports could not be stored and are given up');
          break;
        }
        if (attempt === 1) this.log.warn({ err: error, queue: this.queue, count }, 'reports could not be stored');
        await new Promise((resolve) => setTimeout(resolve, PAUSE * attempt));
      }
    }
    this.#under -= 1;
    if (this.#under === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }
}
