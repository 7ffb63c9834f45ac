import type { Body } from '../../job/job.js';
import type { Row, Statement } from '../../store/sqlite/file/driver.js';
import { type ExternalConnection, wrapConnection } from '../../store/sqlite/file/external-connection.js';
import { isBusy, translate } from '../../store/sqlite/file/failure.js';
import { type Batch, OCCUPIED, type OutboxSource, toJob } from '../source.js';
import { watchFile } from './file-watcher.js';

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
interface OutboxPosition {
  source: string;
  position: string;
}

export class OutboxTable implements OutboxSource {
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

  #alone<T>(work: () => T): T | typeof OCCUPIED {
    if (this.db.inTransaction) return OCCUPIED;
    try {
      return work();
    } catch (error) {
      if (isBusy(error)) return OCCUPIED;
      throw error;
    }
  }

  /** With this query the cost does not depend on the backlog. */
  nextQueue(after: string): string | undefined | typeof OCCUPIED {
    return this.#alone(() => {
      const row = this.sql('SELECT min(queue) AS queue FROM crore_outbox WHERE queue > ?').get(after);
      return (row?.queue ?? undefined) as string | undefined;
    });
  }

  batch(queue: string, most: { rows: number; bytes: number }): Batch | undefined | typeof OCCUPIED {
    return this.#alone(() => this.db.consistently(() => this.#batch(queue, most, Date.now())));
  }

  confirm(queue: string, { source, to }: Batch): undefined | typeof OCCUPIED {
    return this.#alone(() => this.db.atomically(() => this.#confirm(queue, source, to)));
  }

  /** The store's position is that of a row if another relay has sent more, or the file has moved on since. */
  compare(queue: string, { source, from }: Batch, theirs: string): boolean | typeof OCCUPIED {
    return this.#alone(() =>
      this.db.atomically(() => {
        const stand = this.#stand(queue);
        if (stand?.source !== source || stand.position !== from || theirs === stand.position) return false;
        if (!this.#has(queue, theirs)) return this.#renew(queue, stand);
        this.#confirm(queue, source, theirs);
        return false;
      }),
    );
  }

  watch(notify: () => void): () => void {
    return watchFile(this.db.file, notify);
  }

  translate(error: unknown): Error {
    return translate(error, 'outbox');
  }

  /** The application owns the connection. */
  async close(): Promise<void> {}

  #stand(queue: string): OutboxPosition | undefined {
    const row = this.sql('SELECT source, position FROM crore_outbox_queues WHERE queue = ?').get(queue);
    return row && { source: row.source as string, position: row.position as string };
  }

  #batch(queue: string, most: { rows: number; bytes: number }, now: number): Batch | undefined {
    const stand = this.#stand(queue);
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
    const jobs = rows.map((row) => toJob(readRow(row), now - (row.created as number)));
    return { source: stand.source, from: stand.position, to: positionOf(rows.at(-1)!), jobs };
  }

  #has(queue: string, position: string): boolean {
    const row = this.sql('SELECT n, mark FROM crore_outbox WHERE n = ? AND queue = ?').get(numberOf(position), queue);
    return row !== undefined && positionOf(row) === position;
  }

  /** Everything up to this row has arrived. A missing row was confirmed before. */
  #confirm(queue: string, source: string, position: string): undefined {
    if (this.#stand(queue)?.source !== source || !this.#has(queue, position)) return;
    this.sql('DELETE FROM crore_outbox WHERE queue = ? AND n <= ?').run(queue, numberOf(position));
    this.sql('UPDATE crore_outbox_queues SET position = ? WHERE queue = ?').run(position, queue);
  }

  #renew(queue: string, { source, position }: OutboxPosition): boolean {
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

function readRow({ id, payload, priority, at, spec }: Row) {
  return {
    id: id as string,
    payload: payload as Body,
    priority: priority as number,
    at: at as number | null,
    spec: spec as string,
  };
}
