import type { Bytes } from '../../../job/job.js';
import type { Tables } from '../tables.js';

/** Unique raw tasks: one unique lock each, held by the first equal task that is leased. */

/** Whether none of these tasks equals another of them, or a unique task that waits or is leased. */
export function areUnlocked(tables: Tables, queue: number, tasks: readonly Bytes[]): boolean {
  const select = tables.sql('SELECT 1 FROM seals WHERE queue = ? AND body = ?');
  const seen = new Set<string>();
  return tasks.every((task) => {
    const text = Buffer.from(task).toString('latin1');
    if (seen.has(text) || select.get(queue, task)) return false;
    seen.add(text);
    return true;
  });
}

export function lockTasks(tables: Tables, queue: number, tasks: readonly Bytes[]): void {
  const insert = tables.sql('INSERT INTO seals (queue, body) VALUES (?, ?)');
  for (const task of tasks) insert.run(queue, task);
}

/** Moves unique locks to rows that have just been leased. */
export function moveLocksToLeases(tables: Tables, queue: number, rows: readonly [n: number, body: Bytes][]): void {
  if (rows.length === 0 || !hasLocks(tables, queue)) return;
  const update = tables.sql('UPDATE seals SET task = ? WHERE queue = ? AND body = ? AND task IS NULL');
  for (const [n, body] of rows) update.run(n, queue, body);
}

/** The lease of this row has ended for good. */
export function releaseLock(tables: Tables, queue: number, n: number): void {
  const { body } = tables.sql('SELECT body FROM tasks WHERE n = ?').get(n)!;
  tables.sql('DELETE FROM seals WHERE queue = ? AND body = ? AND task = ?').run(queue, body!, n);
}

/** This row waits again, and so does its unique lock. */
export function returnLock(tables: Tables, queue: number, n: number): void {
  const { body } = tables.sql('SELECT body FROM tasks WHERE n = ?').get(n)!;
  tables.sql('UPDATE seals SET task = NULL WHERE queue = ? AND body = ? AND task = ?').run(queue, body!, n);
}

/** Checked once per batch: most queues have no unique locks, and then there is nothing to release or return. */
export function hasLocks(tables: Tables, queue: number): boolean {
  return tables.sql('SELECT 1 FROM seals WHERE queue = ? LIMIT 1').get(queue) !== undefined;
}
