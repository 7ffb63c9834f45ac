import type { NewJob } from '../job/job.js';
import { decodeSpec } from '../job/spec.js';
import type { Row, Statement } from '../store/sqlite/file/driver.js';
import { type ExternalConnection, wrapConnection } from '../store/sqlite/file/external-connection.js';
import { isBusy } from '../store/sqlite/file/failure.js';

/**
 * The outbox tables in the application's file. Row numbers are never reused (AUTOINCREMENT), so the order of rows is
 * the order of commits; a row's `mark` distinguishes it from another row that had its number before a backup was
 * restored. Per queue, `position` is the last row known to have arrived; it changes in the transaction that deletes the
 * arrived rows.
 */
const SCHEMA = [
  `CREATE TABLE IF NOT EXISTS crore_outbox (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    mark TEXT NOT NULL DEFAULT (lower(hex(randomblob(8)))),
    id TEXT NOT NULL,
    priority INTEGER NOT NULL,
    created INTEGER NOT NULL,
    at INTEGER,
    spec TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    payload NOT NULL
  )`,
  'CREATE INDEX IF NOT EXISTS crore_outbox_order ON crore_outbox (queue, n, bytes)',
  `CREATE TABLE IF NOT EXISTS crore_outbox_queues (
    queue TEXT PRIMARY KEY,
    source TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))),
    position TEXT NOT NULL DEFAULT ''
  ) WITHOUT ROWID`,
];

/** The position of a queue in the outbox. */
export interface OutboxPosition {
  source: string;
  position: string;
}

export interface Batch extends OutboxPosition {
  jobs: NewJob[];
  /** The position of the last job. */
  to: string;
}

/**
 * Not now: the application is inside a transaction on this connection, and the visible rows may never be committed; or
 * another connection has locked the file.
 */
export const OCCUPIED = Symbol('occupied');

export class OutboxTable {
  readonly db: ExternalConnection;
  readonly #statements = new Map<string, Statement>();

  constructor(connection: unknown, what: string) {
    this.db = wrapConnection(connection, what);
  }

  /** Creates missing tables. If none is missing, it does not wait for writers of the file. */
  prepare(): void {
    const names = "'crore_outbox', 'crore_outbox_order', 'crore_outbox_queues'";
    const there = this.db.prepare(`SELECT count(*) AS n FROM sqlite_schema WHERE name IN (${names})`).get();
    if (there?.n === SCHEMA.length) return;
    this.db.atomically(() => {
      for (const sql of SCHEMA) this.db.exec(sql);
    });
  }

  sql(text: string): Statement {
    const known = this.#statements.get(text);
    if (known) return known;
    const statement = this.db.prepare(text);
    this.#statements.set(text, statement);
    return statement;
  }

  /** Reads committed rows. */
  read<T>(work: () => T): T | typeof OCCUPIED {
    return this.#alone(() => this.db.consistently(work));
  }

  /** Writes in a transaction of its own. */
  write<T>(work: () => T): T | typeof OCCUPIED {
    return this.#alone(() => this.db.atomically(work));
  }

  #alone<T>(work: () => T): T | typeof OCCUPIED {
    if (this.db.inTransaction) return OCCUPIED;
    try {
      return work();
    } catch (error) {
      if (isBusy(error)) return OCCUPIED;
      throw error;
    }
  }

  /** The first queue after this name that has rows. With this query the cost does not depend on the backlog. */
  nextQueue(after: string): string | undefined {
    const row = this.sql('SELECT min(queue) AS queue FROM crore_outbox WHERE queue > ?').get(after);
    return (row?.queue ?? undefined) as string | undefined;
  }

  stand(queue: string): OutboxPosition | undefined {
    const row = this.sql('SELECT source, position FROM crore_outbox_queues WHERE queue = ?').get(queue);
    return row && { source: row.source as string, position: row.position as string };
  }

  /** The next rows of a queue, limited in number and, after the first row, in bytes. */
  batch(queue: string, most: { rows: number; bytes: number }, now: number): Batch | undefined {
    const stand = this.stand(queue);
    if (!stand) return undefined;
    const sizes = this.sql('SELECT n, bytes FROM crore_outbox WHERE queue = ? ORDER BY n LIMIT ?').all(
      queue,
      most.rows,
    );
    let [last, bytes] = [0, 0];
    for (const row of sizes) {
      bytes += row.bytes as number;
      if (last > 0 && bytes > most.bytes) break;
      last = row.n as number;
    }
    if (last === 0) return undefined;
    const rows = this.sql('SELECT * FROM crore_outbox WHERE queue = ? AND n <= ? ORDER BY n').all(queue, last);
    return { ...stand, jobs: rows.map((row) => toJob(row, now)), to: positionOf(rows.at(-1)!) };
  }

  has(queue: string, position: string): boolean {
    const row = this.sql('SELECT n, mark FROM crore_outbox WHERE n = ? AND queue = ?').get(numberOf(position), queue);
    return row !== undefined && positionOf(row) === position;
  }

  /** Everything up to this row has arrived. A missing row was confirmed before. */
  confirm(queue: string, source: string, position: string): void {
    if (this.stand(queue)?.source !== source || !this.has(queue, position)) return;
    this.sql('DELETE FROM crore_outbox WHERE queue = ? AND n <= ?').run(queue, numberOf(position));
    this.sql('UPDATE crore_outbox_queues SET position = ? WHERE queue = ?').run(position, queue);
  }

  /** Restarts under a new source name; the waiting rows are sent as if none had been sent. */
  renew(queue: string, { source, position }: OutboxPosition): boolean {
    const renewed = this.sql(
      `UPDATE crore_outbox_queues SET source = lower(hex(randomblob(16))), position = ''
       WHERE queue = ? AND source = ? AND position = ?`,
    ).run(queue, source, position);
    return Number(renewed.changes) === 1;
  }
}

function positionOf(row: Row): string {
  return `${row.n}.${row.mark}`;
}

function numberOf(position: string): number {
  return Number.parseInt(position, 10) || 0;
}

/** The job of a row. Its times were fixed when it was written to the outbox, no matter when it is sent. */
function toJob(row: Row, now: number): NewJob {
  const spec = decodeSpec(row.spec as string);
  const waited = Math.max(0, now - (row.created as number));
  return {
    id: row.id as string,
    payload: row.payload as string | Uint8Array,
    priority: row.priority as number,
    at: (row.at ?? undefined) as number | undefined,
    spec: spec.expires > 0 ? { ...spec, expires: Math.max(1, spec.expires - waited) } : spec,
  };
}
