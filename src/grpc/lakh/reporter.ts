import type { Engine } from '../../engine/engine.js';
import { report, type TokenlessReport } from '../../engine/tokenless-report.js';
import type { Settlement } from '../../store/store.js';
import { RetryingBatches } from '../../worker/retrying-batches.js';
import type { Log } from '../context.js';

/** A settlement with the report behind it, in case its token is no longer current. */
export interface Reported extends Settlement {
  report?: TokenlessReport;
}

/**
 * Stores the workers' reports. If the token is known, a report is an ordinary settlement; if it is not, or is outdated, the
 * report is stored without a token.
 */
export class Reporter {
  readonly #settlements: RetryingBatches<Reported>;
  readonly #reports: RetryingBatches<TokenlessReport>;

  constructor(
    private readonly engine: Engine,
    private readonly queue: string,
    log: Log,
  ) {
    const failed = (error: Error, count: number, givenUp: boolean) => {
      const fields = { err: error, queue, count };
      if (givenUp) log.error(fields, 'reports could not be stored and are dropped');
      else log.warn(fields, 'reports could not be stored and will be retried');
    };
    this.#settlements = new RetryingBatches({ send: (batch) => this.#settle(batch), failed });
    this.#reports = new RetryingBatches({
      send: async (batch) => {
        await report(engine, queue, batch);
      },
      failed,
    });
  }

  settle(settlement: Reported): void {
    this.#settlements.add(settlement);
  }

  /**
   * Sends settlements first: a job that is done because it was sent must be stored as done before a report about it is processed.
   */
  report(one: TokenlessReport): void {
    this.#settlements.flush();
    this.#reports.add(one);
  }

  /** Resolves when everything has reached the store or was given up. */
  async flushed(): Promise<void> {
    await this.#settlements.flushed();
    await this.#reports.flushed();
  }

  async #settle(batch: Reported[]): Promise<void> {
    const applied = await this.engine.store.settle(this.queue, batch);
    const overtaken = batch.filter((one, i) => !applied[i] && one.report).map((one) => one.report!);
    if (overtaken.length > 0) await report(this.engine, this.queue, overtaken);
  }
}
