import { CroreError } from '../../errors.js';
import type { Spec } from '../../job/job.js';
import { attemptText } from '../../job/spec.js';
import type { Settlement } from '../../store/store.js';

/** The logger of an application: that of pino has this shape, and `console` comes close. */
export interface Logger {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The job that a settlement is about. */
export interface SettledJob {
  id: string;
  attempt: number;
  spec: Pick<Spec, 'attempts'>;
}

export interface FailedAttempt {
  queue: string;
  id: string;
  attempt: number;
  maxAttempts: number;
  worker: string;
  /** The error in one line. */
  error: string;
  /** What the handler threw, if there is a handler. */
  cause?: unknown;
  /** Milliseconds until the next attempt; `now` if it lost its worker, which is no attempt; undefined if the job is dead. */
  next: number | 'now' | undefined;
}

/** Lines per second; what exceeds them is counted. */
const MOST = 10;
const SECOND = 1_000;

/** Logs failed attempts and dead jobs, a few a second: a queue that fails all the time must not flood the log. */
export class FailureLog {
  #since = 0;
  #lines = 0;
  #suppressed = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly logger: Logger | undefined) {}

  /** Logs a settlement if it ends an attempt that failed. */
  settled(queue: string, job: SettledJob, { lease, outcome, attempt }: Settlement, cause?: unknown): void {
    if (attempt === undefined || !('error' in outcome) || outcome.error === undefined) return;
    const next = outcome.to === 'scheduled' ? outcome.delay : outcome.to === 'ready' ? 'now' : undefined;
    const { id, attempt: number, spec } = job;
    const { error } = outcome;
    this.failed({ queue, id, attempt: number, maxAttempts: spec.attempts, worker: lease.worker, error, cause, next });
  }

  failed(failure: FailedAttempt): void {
    if (!this.logger || !this.#mayLog()) return;
    const { cause, next, ...fields } = failure;
    const details = isError(cause) ? { ...fields, err: cause } : fields;
    if (next === undefined) this.logger.error(details, `${subject(failure)} is dead ${counted(failure)}`);
    else if (next === 'now')
      this.logger.warn(details, `${subject(failure)}: worker lost, back in the queue: ${failure.error}`);
    else this.logger.warn({ ...details, next }, `${subject(failure)} failed ${counted(failure)}`);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#summarize();
  }

  #mayLog(): boolean {
    const now = performance.now();
    if (now - this.#since >= SECOND) {
      this.#since = now;
      this.#lines = 0;
    }
    this.#lines += 1;
    if (this.#lines <= MOST) return true;
    this.#suppressed += 1;
    this.#timer ??= setTimeout(() => this.#summarize(), SECOND).unref();
    return false;
  }

  #summarize(): void {
    this.#timer = undefined;
    if (this.#suppressed === 0) return;
    const count = this.#suppressed;
    this.#suppressed = 0;
    this.logger?.warn({ count }, `${count} more attempts failed`);
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

function subject({ queue, id }: FailedAttempt): string {
  return `job '${id}' of queue '${queue}'`;
}

function counted({ attempt, maxAttempts, error, next }: FailedAttempt): string {
  if (typeof next !== 'number') return `after ${attempt === 1 ? '1 attempt' : `${attempt} attempts`}: ${error}`;
  return `(attempt ${attemptText(attempt, maxAttempts)}, next in ${spoken(next)}): ${error}`;
}

function spoken(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 100) / 10} s`;
}

/** One plain line each on standard error. */
export const PLAIN_LOGGER: Logger = Object.freeze({ warn: plainLine, error: plainLine });

function plainLine(_fields: object, message: string): void {
  process.stderr.write(`crore: ${message.replace(/\s*\n\s*/g, ' ')}\n`);
}

/** `false`: log nothing. An exception in a logger must not stop a worker. */
export function resolveLogger(logger: Logger | false | undefined): Logger | undefined {
  if (logger === false) return undefined;
  if (logger === undefined) return PLAIN_LOGGER;
  if (typeof logger?.warn !== 'function' || typeof logger.error !== 'function')
    throw new CroreError('BAD_OPTION', 'logger must have the functions warn and error, or be false');
  const harmless = (level: 'warn' | 'error') => (fields: object, message: string) => {
    try {
      logger[level](fields, message);
    } catch {
      // there is nobody left to report this to
    }
  };
  return { warn: harmless('warn'), error: harmless('error') };
}
