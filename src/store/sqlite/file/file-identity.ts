import { statSync } from 'node:fs';
import { CroreError } from '../../../errors.js';

/** Identifies the file at a path: a file that was deleted and recreated is a different one. */
function identityOf(path: string, mayBeEmpty = true): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && (mayBeEmpty || found.size > 0n) ? `${found.dev}:${found.ino}` : '';
}

/**
 * Detects that the file of an open database, or its WAL, is no longer at its path. SQLite would continue to write to
 * the file it has open, and no other process would ever see the data.
 */
export class FileIdentity {
  readonly #file: string;
  #log = '';

  /** Call it right after opening the database. */
  constructor(
    private readonly path: string,
    private readonly shown: string,
  ) {
    this.#file = identityOf(path);
  }

  /** Two file system calls, a few microseconds: cheap compared with a commit. */
  check(): void {
    // The file of an open database has a header.
    if (identityOf(this.path, false) !== this.#file) throw this.#gone('the file');
    const log = identityOf(`${this.path}-wal`);
    if (this.#log !== '' && log !== this.#log) throw this.#gone('its log (-wal)');
    this.#log = log;
  }

  #gone(what: string): CroreError {
    const text = `${this.shown}: ${what} was deleted, emptied or replaced while it was open; changes since then are lost`;
    return new CroreError('STORE_GONE', text);
  }
}
