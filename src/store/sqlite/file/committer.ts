import { CroreError } from '../../../errors.js';
import type { Database } from './driver.js';
import { isBusy, isFull, translate } from './failure.js';

/** Pages of a log on a disk that was full. */
const SHORT_LOG = 200;

interface Call {
  work: () => unknown;
  resolve: (value: never) => void;
  reject: (error: Error) => void;
  value?: unknown;
  error?: Error;
}

/**
 * Group commit: all calls made in one turn of the event loop share one transaction and one fsync, each in a savepoint of
 * its own so that a bad one fails alone. A file that another process has locked is tried again later, never waited for.
 */
export class Committer {
  #calls: Call[] = [];
  #scheduled = false;
  #closed = false;
  /** Told after each transaction. */
  onCommit: (() => void) | undefined;

  constructor(
    private readonly db: Database,
    private readonly shown: string,
    private readonly timeout: number,
    /** Throws when what was committed is not where it belongs. */
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

  /** Commits what has been asked for; later calls are refused. */
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

  /** After some errors, such as a full disk, SQLite has undone the whole transaction by itself: then it is everybody's error. */
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
    // Jitter, or processes that collided once would collide again.
    const pause = Math.min(1 + tries, 20) * (0.5 + Math.random());
    setTimeout(() => this.#commit(calls, deadline, tries + 1), pause);
  }

  /**
   * On a disk that was full the log is kept short from now on: it would take many times what the file needs of the room that
   * comes. What it holds goes into the file now, if that has the room.
   */
  #spare(): void {
    try {
      this.db.exec(`PRAGMA wal_autocheckpoint = ${SHORT_LOG}; PRAGMA wal_checkpoint(PASSIVE)`);
    } catch {
      // there is no room yet, and a later commit tries again
    }
  }

  #undo(): void {
    try {
      this.db.exec('ROLLBACK');
    } catch {
      // SQLite rolls back by itself after some errors, and then there is nothing to undo.
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
