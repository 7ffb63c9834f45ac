import { CroreError } from '../../../errors.js';
import type { Database } from './driver.js';
import { isBusy, isFull, translate } from './failure.js';

/** Maximum number of WAL pages after the disk was full. */
const SHORT_LOG = 200;

interface Call {
  work: () => unknown;
  resolve: (value: never) => void;
  reject: (error: Error) => void;
  value?: unknown;
  error?: Error;
}

/**
 * Group commit: all calls made in one turn of the event loop share one transaction and one fsync, each in its own
 * savepoint so that a failing call fails alone. If another process has locked the file, the committer retries later and
 * never blocks.
 */
export class Committer {
  #calls: Call[] = [];
  #scheduled = false;
  #closed = false;
  /** Called after each transaction. */
  onCommit: (() => void) | undefined;

  constructor(
    private readonly db: Database,
    private readonly shown: string,
    private readonly timeout: number,
    /** Throws if the committed file is no longer at its path. */
    private readonly check: () => void = () => {},
  ) {}

  run<T>(work: () => T): Promise<T> {
    if (this.#closed) return Promise.reject(new CroreError('CLOSED', 'the store has been closed'));
    return new Promise<T>((resolve, reject) => {
      this.#calls.push({ work, resolve: resolve as (value: never) => void, reject });
      if (this.#scheduled) return;
      this.#scheduled = true;
      setImmediate(() => this.#flush());
    });
  }

  /** Commits the pending calls; later calls are refused. */
  close(): void {
    this.#closed = true;
    if (this.#calls.length > 0) this.#flush();
  }

  #flush(): void {
    this.#scheduled = false;
    const calls = this.#calls;
    this.#calls = [];
    if (calls.length > 0) this.#commit(calls, performance.now() + this.timeout, 0);
  }

  #commit(calls: Call[], deadline: number, tries: number): void {
    try {
      this.db.exec('BEGIN IMMEDIATE');
    } catch (error) {
      this.#later(calls, deadline, tries, error);
      return;
    }
    try {
      if (calls.length === 1) calls[0]!.value = calls[0]!.work();
      else for (const call of calls) this.#inSavepoint(call);
      this.db.exec('COMMIT');
      this.check();
    } catch (error) {
      this.#undo();
      if (isFull(error)) this.#spare();
      fail(calls, translate(error, this.shown));
      return;
    }
    for (const call of calls) {
      if (call.error) call.reject(translate(call.error, this.shown));
      else call.resolve(call.value as never);
    }
    this.onCommit?.();
  }

  #inSavepoint(call: Call): void {
    this.db.exec('SAVEPOINT one');
    attempt(call);
    if (call.error) this.#undoOne(call.error);
    this.db.exec('RELEASE one');
  }

  /**
   * After some errors, such as a full disk, SQLite has rolled back the whole transaction itself: then every call fails.
   */
  #undoOne(error: Error): void {
    try {
      this.db.exec('ROLLBACK TO one');
    } catch {
      throw error;
    }
  }

  #later(calls: Call[], deadline: number, tries: number, error: unknown): void {
    if (!isBusy(error) || this.#closed || performance.now() > deadline) {
      fail(calls, translate(error, this.shown));
      return;
    }
    // Jitter: processes that collided once would otherwise collide again.
    const pause = Math.min(1 + tries, 20) * (0.5 + Math.random());
    setTimeout(() => this.#commit(calls, deadline, tries + 1), pause);
  }

  /**
   * After the disk was full, keeps the WAL short from now on: it would otherwise take many times the space that the
   * file needs as space becomes available. Also moves its content into the file now, if there is space.
   */
  #spare(): void {
    try {
      this.db.exec(`PRAGMA wal_autocheckpoint = ${SHORT_LOG}; PRAGMA wal_checkpoint(PASSIVE)`);
    } catch {
      // there is no space yet; a later commit tries again
    }
  }

  #undo(): void {
    try {
      this.db.exec('ROLLBACK');
    } catch {
      // SQLite rolls back by itself after some errors; then there is nothing to undo.
    }
  }
}

function attempt(call: Call): void {
  try {
    call.value = call.work();
  } catch (error) {
    call.error = error as Error;
  }
}

function fail(calls: Call[], error: Error): void {
  for (const call of calls) call.reject(error);
}
