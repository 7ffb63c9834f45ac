import type { Tables } from './tables.js';

/**
 * Records that somebody still needs are dropped neither by count nor by age: those of upstream jobs until their dependents have
 * ended, and those that somebody waited for until a minute after their end. A record that would have been dropped is hidden: it can
 * be read by its id, is neither listed nor counted, and goes with the last one who needs it. Its `until` is HIDDEN.
 */
export const HIDDEN = 100_000_000_000_000;
const WAITED = 60_000;
/** In place of a dependent: those who wait for the end. */
const WAITER = 0;

/** A dependent job needs the record of an upstream job. */
export function keepRecord(tables: Tables, up: number, down: number): void {
  insert(tables, up, down, 0);
}

/** To be called before jobs end: keeps the records of those that somebody waits for. */
export function keepAwaited(
  tables: Tables,
  queue: number,
  now: number,
  ended: readonly { n: number; id: string }[],
): void {
  if (!tables.sql('SELECT 1 FROM awaited LIMIT 1').get()) return;
  const take = tables.sql('DELETE FROM awaited WHERE queue = ? AND id = ?');
  for (const { n, id } of ended) {
    if (take.run(queue, id).changes === 1) insert(tables, n, WAITER, now + WAITED);
  }
}

/** To be called when jobs have ended: they no longer need the records of their upstream jobs. */
export function releaseNeeds(tables: Tables, ended: readonly { n: number }[]): void {
  if (!isAnyNeeded(tables)) return;
  const select = tables.sql('SELECT up FROM needed WHERE down = ?');
  for (const { n } of ended) for (const row of select.all(n)) release(tables, row.up as number, n);
}

/** Releases the records that somebody waited for, when their time is up; returns how many. */
export function releaseWaited(tables: Tables, now: number, limit: number): number {
  const rows = tables.sql(`SELECT up FROM needed WHERE down = ${WAITER} AND until <= ? LIMIT ?`).all(now, limit);
  for (const row of rows) release(tables, row.up as number, WAITER);
  return rows.length;
}

/** Somebody waits for the end of these jobs. */
export function awaitEnds(tables: Tables, queue: number, ids: readonly string[]): void {
  const mark = tables.sql(
    `INSERT OR IGNORE INTO awaited (queue, id) SELECT queue, id FROM jobs WHERE queue = ? AND id = ? AND state < 4`,
  );
  for (const id of ids) mark.run(queue, id);
}

export function isNeeded(tables: Tables, n: number): boolean {
  return tables.sql('SELECT 1 FROM needed WHERE up = ? LIMIT 1').get(n) !== undefined;
}

export function isNeededByJobs(tables: Tables, n: number): boolean {
  return tables.sql(`SELECT 1 FROM needed WHERE up = ? AND down <> ${WAITER} LIMIT 1`).get(n) !== undefined;
}

/** Drops a hidden record, whoever needs it. */
export function releaseAll(tables: Tables, up: number): void {
  tables.sql('DELETE FROM needed WHERE up = ?').run(up);
  dropHidden(tables, up);
}

export function isAnyNeeded(tables: Tables): boolean {
  return tables.sql('SELECT 1 FROM needed LIMIT 1').get() !== undefined;
}

/** Whether an ended job may be needed: if not, nobody has to look at each of them. */
export function mayBeNeeded(tables: Tables): boolean {
  return isAnyNeeded(tables) || tables.sql('SELECT 1 FROM awaited LIMIT 1').get() !== undefined;
}

function insert(tables: Tables, up: number, down: number, until: number): void {
  tables.sql('INSERT OR REPLACE INTO needed (up, down, until) VALUES (?, ?, ?)').run(up, down, until);
}

function release(tables: Tables, up: number, down: number): void {
  tables.sql('DELETE FROM needed WHERE up = ? AND down = ?').run(up, down);
  if (!isNeeded(tables, up)) dropHidden(tables, up);
}

function dropHidden(tables: Tables, up: number): void {
  const gone = tables.sql(`DELETE FROM jobs WHERE n = ? AND state > 3 AND until = ${HIDDEN}`).run(up).changes;
  if (gone === 1) tables.sql('DELETE FROM notes WHERE n = ?').run(up);
}
