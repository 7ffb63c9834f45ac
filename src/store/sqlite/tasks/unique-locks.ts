import type { Bytes } from '../../../job/job.js';
import type { Row } from '../file/driver.js';
import type { Tables } from '../tables.js';

/** Unique raw tasks: one seal each, carried by the first equal one that is leased. */

/** Whether no equal unique task waits or is leased, for all of them and among themselves. */
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

/** These rows have just been leased. */
export function moveLocksToLeases(tables: Tables, queue: number, rows: readonly Row[]): void {
  if (rows.length === 0 || !hasLocks(tables, queue)) return;
  const update = tables.sql('UPDATE seals SET task = ? WHERE queue = ? AND body = ? AND task IS NULL');
  for (const row of rows) update.run(row.n!, queue, row.body!);
}

/** The lease of this row has ended for good. */
export function releaseLock(tables: Tables, queue: number, n: number): void {
  const { body } = tables.sql('SELECT body FROM tasks WHERE n = ?').get(n)!;
  tables.sql('DELETE FROM seals WHERE queue = ? AND body = ? AND task = ?').run(queue, body!, n);
}

/** This row waits again, and its seal with it. */
export function returnLock(tables: Tables, queue: number, n: number): void {
  const { body } = tables.sql('SELECT body FROM tasks WHERE n = ?').get(n)!;
  tables.sql('UPDATE seals SET task = NULL WHERE queue = ? AND body = ? AND task = ?').run(queue, body!, n);
}

/** Asked once for a batch: most queues have none, and then there is nothing to release or put back. */
export function hasLocks(tables: Tables, queue: number): boolean {
  return tables.sql('SELECT 1 FROM seals WHERE queue = ? LIMIT 1').get(queue) !== undefined;
}
