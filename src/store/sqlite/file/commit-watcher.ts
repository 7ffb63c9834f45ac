import { type FSWatcher, watch } from 'node:fs';
import type { Tables } from '../tables.js';

/** Minimum interval between notifications in milliseconds. */
const PAUSE = 2;
const SLOW_POLL = 1_000;

/**
 * Detects commits of other processes: the WAL file changes, and `data_version` shows that the commit was not ours. A
 * slow poll backs this up, because file events may be missed or unavailable.
 */
export class CommitWatcher {
  #watcher: FSWatcher | undefined;
  #poll: NodeJS.Timeout | undefined;
  #pending: NodeJS.Timeout | undefined;
  #version = -1;

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
      this.#watcher = watch(`${this.file}-wal`, { persistent: false }, () => this.#soon());
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

  #soon(): void {
    this.#pending ??= setTimeout(() => {
      this.#pending = undefined;
      this.#look();
    }, PAUSE).unref();
  }

  #look(): void {
    let version: number;
    try {
      version = this.#read();
    } catch {
      return; // busy or failing: the next check, or the caller's own call, will show it
    }
    if (version === this.#version) return;
    this.#version = version;
    this.notify();
  }

  #read(): number {
    return this.tables.sql('PRAGMA data_version').get()?.data_version as number;
  }
}
