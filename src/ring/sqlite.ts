import { closeSync, openSync } from 'node:fs';
import { hostname } from 'node:os';
import { CroreError } from '../errors.js';
import { now } from '../process/clock.js';
import { type Database, openDatabase, type Row, type Statement } from '../store/sqlite/file/driver.js';
import { type RingKeys, ringKeys } from './redis/keys.js';
import type { LockedItem, LockState, Look, RingLayout, RingStore } from './store.js';

/**
 * The leftmost item has the lowest position; an INSERT without a position appends, as RPUSH does. Locks expire by the
 * wall clock, the only clock that all processes on a file share across a reboot. `ring_holder` and `ring_names` are for
 * people who look on: who holds a lock, as long as it has this token, and how the locks of a list are called.
 */
const TABLES = `
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS ring_list (position INTEGER PRIMARY KEY, list TEXT NOT NULL, item BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS ring_list_order ON ring_list (list, position);
CREATE TABLE IF NOT EXISTS ring_lock (lock BLOB PRIMARY KEY, token BLOB NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ring_holder (
  lock BLOB PRIMARY KEY, token BLOB NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, since INTEGER NOT NULL,
  resting INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ring_names (list TEXT PRIMARY KEY, lock_start TEXT NOT NULL) WITHOUT ROWID;
`;

// An item entered in the sqlite3 shell is text: the casts turn it into its bytes.
const FIND = `
SELECT position, CAST(item AS BLOB) AS item FROM (
  SELECT position, item FROM ring_list WHERE list = ? ORDER BY position LIMIT ? OFFSET ?
) WHERE NOT EXISTS (
  SELECT 1 FROM ring_lock WHERE lock = CAST(? || CAST(item AS BLOB) AS BLOB) AND until > ?
) ORDER BY position LIMIT 1`;
const ROTATE = `
UPDATE ring_list SET position = position + (SELECT max(position) FROM ring_list) - ? + 1
WHERE list = ? AND position <= ?`;
const LOCK = `
INSERT INTO ring_lock (lock, token, until) VALUES (?, ?, ?)
ON CONFLICT (lock) DO UPDATE SET token = excluded.token, until = excluded.until WHERE until <= ?`;

const HOLDER = 'INSERT OR REPLACE INTO ring_holder (lock, token, host, pid, since) VALUES (?, ?, ?, ?, ?)';
const NAMED = `
INSERT INTO ring_names (list, lock_start) VALUES (?, ?)
ON CONFLICT (list) DO UPDATE SET lock_start = excluded.lock_start WHERE lock_start <> excluded.lock_start`;

/** A ring in a SQLite file: every operation is one transaction, so a process sees the same states as with a Redis script. */
export class SqliteRing implements RingStore {
  private readonly keys: RingKeys;
  private db: Database | undefined;
  private readonly statements = new Map<string, Statement>();

  constructor(
    private readonly file: string,
    private readonly layout: RingLayout,
  ) {
    this.keys = ringKeys(layout.prefix, layout.lockName);
  }

  take(token: Buffer, from: number, count: number, within: number): Promise<Look> {
    return this.transact(within, () => this.takeNow(token, from, count));
  }

  refresh(held: readonly LockedItem[], within: number): Promise<LockState[]> {
    return this.transact(within, () => held.map((each) => this.refreshNow(each)));
  }

  retake({ item, token }: LockedItem, within: number): Promise<boolean> {
    return this.transact(within, () => this.lock(item, token));
  }

  release({ item, token }: LockedItem, rest: number, within: number): Promise<boolean> {
    const lock = this.keys.lock(item);
    return this.transact(within, () => {
      if (rest === 0) {
        this.change('DELETE FROM ring_holder WHERE lock = ? AND token = ?', lock, token);
        return this.change('DELETE FROM ring_lock WHERE lock = ? AND token = ?', lock, token);
      }
      this.change('UPDATE ring_holder SET resting = 1 WHERE lock = ? AND token = ?', lock, token);
      const sql = 'UPDATE ring_lock SET until = ? WHERE lock = ? AND token = ?';
      return this.change(sql, Date.now() + Math.round(rest), lock, token);
    });
  }

  /** The only operation that must survive a power failure: a lost lock or rotation does no harm, a lost item does. */
  async add(items: readonly Buffer[], within: number): Promise<number> {
    const insert = 'INSERT INTO ring_list (list, item) VALUES (?, ?)';
    await this.transact(within, () => undefined);
    this.db?.exec('PRAGMA synchronous = FULL');
    try {
      return await this.transact(within, () => {
        for (const item of items) this.change(insert, this.keys.list, item);
        return this.length();
      });
    } finally {
      this.db?.exec('PRAGMA synchronous = NORMAL');
    }
  }

  remove(item: Buffer, within: number): Promise<number> {
    const sql = 'DELETE FROM ring_list WHERE list = ? AND CAST(item AS BLOB) = ?';
    return this.transact(within, () => Number(this.statement(sql).run(this.keys.list, item).changes));
  }

  items(within: number): Promise<Buffer[]> {
    const sql = 'SELECT CAST(item AS BLOB) AS item FROM ring_list WHERE list = ? ORDER BY position';
    return this.transact(within, () => this.statement(sql).all(this.keys.list).map(itemOf));
  }

  close(): void {
    this.statements.clear();
    this.db?.close();
    this.db = undefined;
  }

  private takeNow(token: Buffer, from: number, count: number): Look {
    const length = this.length();
    const { list, lockStart } = this.keys;
    const found = this.statement(FIND).get(list, count, from, Buffer.from(lockStart), Date.now());
    if (!found) return { length, next: Math.min(length, from + count), item: undefined };
    const item = itemOf(found);
    this.lock(item, token);
    this.change(HOLDER, this.keys.lock(item), token, hostname(), process.pid, Date.now());
    this.change(NAMED, list, lockStart);
    const lowest = this.first('SELECT min(position) AS n FROM ring_list WHERE list = ?');
    const moved = this.statement(ROTATE).run(lowest, list, found.position!);
    return { length, next: Number(moved.changes), item };
  }

  private refreshNow({ item, token }: LockedItem): LockState {
    const lock = this.keys.lock(item);
    const row = this.statement('SELECT token FROM ring_lock WHERE lock = ? AND until > ?').get(lock, Date.now());
    if (!row) return 'gone';
    if (!token.equals(row.token as Uint8Array)) return 'foreign';
    this.change('UPDATE ring_lock SET until = ? WHERE lock = ?', Date.now() + this.layout.expiryMs, lock);
    return 'kept';
  }

  private lock(item: Buffer, token: Buffer): boolean {
    const at = Date.now();
    return this.change(LOCK, this.keys.lock(item), token, at + this.layout.expiryMs, at);
  }

  private length(): number {
    return this.first('SELECT count(*) AS n FROM ring_list WHERE list = ?');
  }

  private first(sql: string): number {
    return Number(this.statement(sql).get(this.keys.list)?.n ?? 0);
  }

  private change(sql: string, ...values: (string | number | Buffer)[]): boolean {
    return Number(this.statement(sql).run(...values).changes) > 0;
  }

  private statement(sql: string): Statement {
    const known = this.statements.get(sql) ?? this.open().prepare(sql);
    this.statements.set(sql, known);
    return known;
  }

  private open(): Database {
    if (this.db) return this.db;
    if (this.file !== ':memory:') closeSync(openSync(this.file, 'a', 0o600));
    const db = openDatabase(this.file);
    try {
      db.exec(TABLES);
    } catch (error) {
      db.close();
      throw error;
    }
    this.db = db;
    return db;
  }

  /** The driver waits only 2 ms for a busy file, so that it does not block the event loop; the longer wait happens here. */
  private async transact<T>(within: number, body: () => T): Promise<T> {
    const late = now() + within;
    for (let pause = 1; ; pause = Math.min(pause * 2, 50)) {
      try {
        return this.transactNow(body);
      } catch (error) {
        const failure = this.failure(error as Error);
        if (failure.code !== 'STORE_BUSY' || now() > late) throw failure;
      }
      await new Promise((resolve) => setTimeout(resolve, pause * (0.5 + Math.random())));
    }
  }

  private transactNow<T>(body: () => T): T {
    const db = this.open();
    db.exec('BEGIN IMMEDIATE');
    try {
      const result = body();
      db.exec('COMMIT');
      return result;
    } catch (error) {
      db.exec('ROLLBACK');
      throw error;
    }
  }

  private failure(error: Error): CroreError {
    if (error instanceof CroreError) return error;
    const busy = /database (table )?is locked|busy/i.test(error.message);
    const code = busy ? 'STORE_BUSY' : /full/.test(error.message) ? 'STORE_FULL' : 'STORE_UNREACHABLE';
    return new CroreError(code, `sqlite:${this.file}: ${error.message}`, { cause: error });
  }
}

function itemOf(row: Row): Buffer {
  return Buffer.from(row.item as Uint8Array);
}
