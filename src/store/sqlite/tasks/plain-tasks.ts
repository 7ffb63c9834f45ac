import type { Bytes, Entry } from '../../../job/job.js';
import type { Settlement } from '../../store.js';
import { makeToken, type QueueCounters, splitToken, type Tables } from '../tables.js';
import { hasLocks, moveLocksToLeases } from './unique-locks.js';

/** Adding, taking and ending many raw tasks with a statement for all of them: with one for each, working them takes two thirds more CPU time. */

/** A place is where a task begins in the packed bytes, times this, plus its length. */
const PLACE = 2 ** 26;
/** With fewer tasks, packing saves nothing. */
const FEW = 4;

const ONE = 'INSERT INTO tasks (queue, seq, body) VALUES (?, ?, ?)';
const PACKED = `INSERT INTO tasks (queue, seq, body)
  SELECT ?1, ?2 + key, substr(?3, 1 + value / ${PLACE}, value % ${PLACE}) FROM json_each(?4)`;

/** Appends tasks of this many bytes together to their queue. */
export function insertTasks(tables: Tables, counters: QueueCounters, tasks: readonly Bytes[], bytes: number): void {
  const { queue } = counters;
  // SQLite has no empty bytes to cut empty tasks from.
  const canPack = tasks.length >= FEW && bytes > 0 && bytes < PLACE;
  if (canPack) {
    tables.sql(PACKED).run(queue, counters.get('back') + 1, Buffer.concat(tasks), `[${placesOf(tasks).join()}]`);
    counters.add('back', tasks.length);
  } else {
    for (const task of tasks) tables.sql(ONE).run(queue, counters.nextBack(), task);
  }
}

function placesOf(tasks: readonly Bytes[]): number[] {
  let at = 0;
  return tasks.map((task) => {
    const place = at * PLACE + task.length;
    at += task.length;
    return place;
  });
}

const FIRST_TASKS = 'SELECT n, body FROM tasks WHERE queue = ? AND worker IS NULL ORDER BY seq LIMIT ?';
const LEASE = 'UPDATE tasks SET worker = ?, token = ? WHERE';

interface Claimer {
  queue: number;
  worker: string;
}

/** Leases the raw tasks that have waited longest: reads and then leases, as for jobs. */
export function takeTasks(
  tables: Tables,
  counters: QueueCounters,
  { queue, worker }: Claimer,
  claim: string,
  limit: number,
): Entry[] {
  if (limit <= 0) return [];
  const rows = tables.arrays(FIRST_TASKS).all(queue, limit) as [number, Bytes][];
  if (rows.length === 0) return [];
  const { where, values } = whichRows(rows.map(([n]) => n));
  tables.sql(`${LEASE} ${where}`).run(worker, claim, ...values);
  counters.add('tasks', -rows.length);
  counters.add('bytes', -rows.reduce((sum, [, body]) => sum + body.length, 0));
  moveLocksToLeases(tables, queue, rows);
  return rows.map(([n, task]) => ({ lease: { worker, token: makeToken(0, n, claim, '') }, task }));
}

/**
 * Ends raw tasks that are done, a statement for each claim they come from. Undefined if the batch is different; otherwise how many it ended, which
 * is fewer if a lease is stale or occurs twice.
 */
export function endTasks(tables: Tables, queue: number, settlements: readonly Settlement[]): number | undefined {
  const claims = new Map<string, number[]>();
  for (const { lease, outcome, record } of settlements) {
    if (lease.id !== undefined || outcome.to !== 'done' || record) return undefined;
    const { n, nonce } = splitToken(lease.token);
    if (makeToken(0, n, nonce, '') !== lease.token) return undefined;
    const rows = claims.get(nonce);
    if (rows) rows.push(n);
    else claims.set(nonce, [n]);
  }
  if (hasLocks(tables, queue)) return undefined;
  let ended = 0;
  for (const [claim, rows] of claims) {
    const { where, values } = whichRows(rows);
    const remove = tables.sql(`DELETE FROM tasks WHERE ${where} AND +queue = ? AND token = ?`);
    ended += Number(remove.run(...values, queue, claim).changes);
  }
  return ended;
}

/** Rows that were added or claimed together are usually neighbours, and a range costs a fraction of a list. */
export function whichRows(rows: readonly number[]): { where: string; values: (number | string)[] } {
  const [first, last] = [Math.min(...rows), Math.max(...rows)];
  const isRange = last - first + 1 === rows.length && new Set(rows).size === rows.length;
  if (isRange) return { where: 'n BETWEEN ? AND ?', values: [first, last] };
  return { where: 'n IN (SELECT value FROM json_each(?))', values: [JSON.stringify(rows)] };
}
