import { type FSWatcher, watch } from 'node:fs';
import type { Tables } from '../tables.js';

/** Changes are told at most this often, in milliseconds. */
const PAUSE = 2;
const SLOW_POLL = 1_000;

/**
 * Tells when another process has committed: the WAL file changes, and `data_version` says that it was not us. Behind it
 * stands a slow poll, for file events may be missed or unavailable.
 */
export class CommitWatcher {
  #watcher: FSWatcher | undefined;
  #poll: NodeJS.Timeout | undefined;
  #pending: NodeJS.Timeout | undefined;
  #version = -1;

  constructor(
    private readonly file: string,
    private readonly tables: Tables,
    private readonly tell: () => void,
  ) {}

  start(): void {
    if (this.#poll) return;
    this.#version = this.#read();
    this.#poll = setInterval(() => this.#look(), SLOW_POLL).unref();
    try {
      this.#watcher = watch(`${this.file}-wal`, { persistent: false }, () => this.#soon());
      this.#watcher.on('error', () => this.#watcher?.close());
    } catch {
      // no file events here: the poll has to do
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
      return; // busy or failing: the next look, or the caller's own call, will tell
    }
    if (version === this.#version) return;
    this.#version = version;
    this.tell();
  }

  #read(): number {
    return this.tables.sql('PRAGMA data_version').get()?.data_version as number;
  }
}
