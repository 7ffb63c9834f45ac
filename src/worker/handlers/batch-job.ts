import { CroreError } from '../../errors.js';
import type { Duration } from '../../job/duration.js';
import { type ActiveJob, describeEntry, RunningJob, SETTLED, type Settled } from '../running.js';

/**
 * A job of a batch, as the handler sees it. Each of `done`, `fail`, `snooze` and `release` settles it at once, whatever becomes of the
 * others; a job can be settled only once.
 */
export interface BatchJob<T, R = unknown> extends ActiveJob<T> {
  readonly group: string | undefined;
  /** The job is done, with this result. */
  done(...result: undefined extends R ? [result?: R] : [result: R]): Settled;
  /** The attempt has failed: the job is retried as if a handler of its own had thrown this error; a `Fatal` makes it dead. */
  fail(error: unknown): Settled;
}

/** A job of a batch. Its batch calls `begin` when the handler is about to run, and `end` for what the handler says of it. */
export class RunningBatchJob<T> extends RunningJob<T> implements BatchJob<T> {
  #resolve: (value: unknown) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  /** How it was settled, if it was. */
  #how: string | undefined;

  get group(): string | undefined {
    return this.spec.group;
  }

  get isSettled(): boolean {
    return this.#how !== undefined;
  }

  /** Resolves or rejects as a handler for this job alone would. */
  begin(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  done(result?: unknown): Settled {
    this.#mustBeOpen();
    return this.#settle('done', () => this.#resolve(result));
  }

  fail(error: unknown): Settled {
    this.#mustBeOpen();
    return this.#settle('failed', () => this.#reject(error));
  }

  override snooze(delay: Duration): Settled {
    this.#mustBeOpen();
    super.snooze(delay);
    return this.#settle('snoozed', () => this.#resolve(undefined));
  }

  override release(): Settled {
    this.#mustBeOpen();
    super.release();
    return this.#settle('released', () => this.#resolve(undefined));
  }

  /** Takes what the handler returned for it, unless it is settled. */
  end(value: unknown): void {
    if (this.isSettled) return;
    if (value === SETTLED)
      this.fail(new CroreError('BAD_RESULT', `${describeEntry(this)} was not settled, another was`));
    else if (isError(value)) this.fail(value);
    else this.done(value);
  }

  /** The handler threw, unless the job is settled. */
  endWith(error: unknown): void {
    if (!this.isSettled) this.fail(error);
  }

  /** A job that the worker no longer holds can be settled again and again: it makes no difference. */
  #mustBeOpen(): void {
    if (this.#how === undefined || this.over) return;
    throw new CroreError('BAD_RESULT', `${describeEntry(this)} is already settled: ${this.#how}`);
  }

  #settle(how: string, settle: () => void): Settled {
    this.#how = how;
    settle();
    return SETTLED;
  }
}

/** Never throws: a Proxy may. */
function isError(value: unknown): boolean {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}
