import { type FSWatcher, watch } from 'node:fs';
import type { Tables } from '../tables.js';

/** Minimum interval between notifications in milliseconds. */
const PAUSE = 2;
/** After how many milliseconds it looks again for a commit that was not there yet; this doubles up to the last. */
const FIRST_PAUSE = 1;
const LAST_PAUSE = 256;
const SLOW_POLL = 1_000;

/**
 * Detects commits of other processes: the WAL file changes, and `data_version` shows that the commit was not ours. A
 * slow poll backs this up, because file events may be missed or unavailable.
 */
export class CommitWatcher {
  #watcher: FSWatcher | undefined;
  #poll: NodeJS.Timeout | undefined;
  #pending: NodeJS.Timeout | undefined;
  #pause = FIRST_PAUSE;
  #version = -1;
  #lookedAt = 0;
  #notifiedAt = 0;

  constructor(
    private readonly file: string,
    private readonly tables: Tables,
    private readonly notify: () => void,
  ) {}

  start(): void {
    if (this.#poll) return;
    this.#version = this.#read();
    this.#poll = setInterval(() => this.#look(), SLOW_POLL).unref();
    try {
      this.#watcher = watch(`${this.file}-wal`, { persistent: false }, () => this.#written());
      this.#watcher.on('error', () => this.#watcher?.close());
    } catch {
      // no file events here: rely on the poll
    }
  }

  stop(): void {
    this.#watcher?.close();
    clearInterval(this.#poll);
    clearTimeout(this.#pending);
    this.#poll = undefined;
    this.#pending = undefined;
  }

  /** Looks at once, unless it has just done so; then as soon as it may. To wait a pause first made half of the time until another process starts a job. */
  #written(): void {
    if (this.#pending && this.#pause === FIRST_PAUSE) return;
    clearTimeout(this.#pending);
    this.#pending = undefined;
    this.#pause = FIRST_PAUSE;
    const now = performance.now();
    const wait = Math.max(this.#notifiedAt + PAUSE, this.#lookedAt + FIRST_PAUSE) - now;
    if (wait > 0) this.#lookIn(Math.ceil(wait));
    else this.#lookAgain();
  }

  #lookIn(ms: number): void {
    this.#pending = setTimeout(() => {
      this.#pending = undefined;
      this.#lookAgain();
    }, ms).unref();
  }

  /**
   * The file changes before the commit: that follows when the disk has confirmed, and changes it no more. So it looks again, less and less often. Without that,
   * more than one job in a hundred waited for the slow poll. A commit that was there may not be that of the last change.
   */
  #lookAgain(): void {
    if (this.#look()) this.#pause = PAUSE;
    if (this.#pause > LAST_PAUSE) return;
    this.#lookIn(this.#pause);
    this.#pause *= 2;
  }

  /** Returns whether there was a commit. */
  #look(): boolean {
    this.#lookedAt = performance.now();
    let version: number;
    try {
      version = this.#read();
    } catch {
      return false; // busy or failing: the next check, or the caller's own call, will show it
    }
    if (version === this.#version) return false;
    this.#version = version;
    this.#notifiedAt = this.#lookedAt;
    this.notify();
    return true;
  }

  #read(): number {
    return this.tables.sql('PRAGMA data_version').get()?.data_version as number;
  }
}
