import { statSync } from 'node:fs';
import { CroreError } from '../../../errors.js';

/** What a path leads to: a file that was deleted and made anew is another one. */
function identityOf(path: string, mayBeEmpty = true): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && (mayBeEmpty || found.size > 0n) ? `${found.dev}:${found.ino}` : '';
}

/**
 * Notices that the file of an open database, or its log, is no longer where it was. SQLite goes on writing to what it has
 * open, and nobody else would ever see it.
 */
export class FileIdentity {
  readonly #file: string;
  #log = '';

  /** For a database that has just been opened. */
  constructor(
    private readonly path: string,
    private readonly shown: string,
  ) {
    this.#file = identityOf(path);
  }

  /** Two looks at the file system, a few microseconds: cheap beside a commit. */
  check(): void {
    // A database that is open has a header.
    if (identityOf(this.path, false) !== this.#file) throw this.#gone('the file');
    const log = identityOf(`${this.path}-wal`);
    if (this.#log !== '' && log !== this.#log) throw this.#gone('its log (-wal)');
    this.#log = log;
  }

  #gone(what: string): CroreError {
    const text = `${this.shown}: ${what} was deleted, emptied or replaced while it was open; what was done since is lost`;
    return new CroreError('STORE_GONE', text);
  }
}
