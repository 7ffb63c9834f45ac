import type { QueueAccess } from './access.js';
import { awaitEnds } from './kept-records.js';

const DELAY = 20;
/** How many marks are remembered as written; a mark that is written twice is harmless. */
const MOST = 100_000;

/** Marks jobs that somebody waits for, so that their records outlive their end, a moment after the wait has begun. */
export class AwaitMarks {
  readonly #pending = new Map<string, Set<string>>();
  readonly #written = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly access: QueueAccess) {}

  add(queue: string, ids: readonly string[]): void {
    const set = this.#pending.get(queue) ?? new Set();
    for (const id of ids) if (!this.#written.has(`${queue}\0${id}`)) set.add(id);
    if (set.size === 0) return;
    this.#pending.set(queue, set);
    this.#timer ??= setTimeout(() => this.#write(), DELAY).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #write(): void {
    this.#timer = undefined;
    const { tables } = this.access;
    for (const [queue, ids] of this.#pending) {
      const written = () => {
        if (this.#written.size + ids.size > MOST) this.#written.clear();
        for (const id of ids) this.#written.add(`${queue}\0${id}`);
      };
      // The next poll tries again.
      this.access.update(queue, undefined, (n) => awaitEnds(tables, n, [...ids])).then(written, () => {});
    }
    this.#pending.clear();
  }
}
