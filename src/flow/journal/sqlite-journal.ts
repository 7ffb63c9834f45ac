import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { CroreError } from '../../errors.js';
import { type Database, openDatabase, type Row, type Statement } from '../../store/sqlite/file/driver.js';
import { isBusy, translate } from '../../store/sqlite/file/failure.js';
import { migrate } from '../../store/sqlite/file/schema.js';
import type { NodeEnd } from '../graph/node-spec.js';
import {
  decodeEnds,
  decodeRunning,
  encodeEnds,
  encodeRunning,
  type FlowInfo,
  type FlowState,
  HOLD,
  type Journal,
  type Memory,
  type RunnerReport,
  type WatchedFlow,
} from './journal.js';

/** Created with the first flow in a file; a file without flows has none of these tables. */
const TABLES = `
  CREATE TABLE IF NOT EXISTS flows (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    info TEXT NOT NULL,
    definition TEXT NOT NULL,
    holder TEXT,
    until INTEGER NOT NULL DEFAULT 0,
    cancel INTEGER NOT NULL DEFAULT 0,
    counts TEXT,
    running TEXT
  );
  CREATE TABLE IF NOT EXISTS flow_ends (n INTEGER PRIMARY KEY, flow INTEGER NOT NULL, body TEXT NOT NULL);
  CREATE INDEX IF NOT EXISTS flow_ends_by_flow ON flow_ends (flow);
  CREATE TABLE IF NOT EXISTS flow_memories (
    name TEXT NOT NULL,
    node TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (name, node)
  ) WITHOUT ROWID;
`;

/** Columns that files of earlier versions do not have: the runner's last report. */
const NEWER_COLUMNS = ['counts', 'running'];

export interface SqliteJournalOptions {
  /** Milliseconds a call may wait for a file that another process has locked. */
  timeout: number;
  /** A kill loses nothing, a power failure the last moments: for files whose contents can be computed again. */
  relaxed?: boolean;
}

export async function openSqliteJournal(file: string, options: SqliteJournalOptions): Promise<SqliteJournal> {
  const deadline = performance.now() + options.timeout;
  for (;;) {
    try {
      return new SqliteJournal(prepare(file, options), `sqlite:${file}`, options.timeout);
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw translate(error, `sqlite:${file}`);
      await pause(10);
    }
  }
}

function prepare(file: string, options: SqliteJournalOptions): Database {
  const path = file === ':memory:' ? file : resolve(file);
  if (file !== ':memory:' && !existsSync(path)) closeSync(openSync(path, 'a', 0o600));
  const db = openDatabase(path);
  try {
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${options.relaxed ? 'NORMAL' : 'FULL'};
      PRAGMA wal_autocheckpoint = 4000; PRAGMA temp_store = MEMORY`);
    migrate(db, `sqlite:${file}`);
    db.exec(TABLES);
    addColumns(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Another process may be adding them at the same time: only one of them may look and add. */
function addColumns(db: Database): void {
  if (missingColumns(db).length === 0) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    for (const name of missingColumns(db)) db.exec(`ALTER TABLE flows ADD COLUMN ${name} TEXT`);
    db.exec('COMMIT');
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}

function missingColumns(db: Database): string[] {
  const known = db
    .prepare('PRAGMA table_info(flows)')
    .all()
    .map(({ name }) => name);
  return NEWER_COLUMNS.filter((name) => !known.includes(name));
}

/** Whether the file has had a flow; it is not changed, and not created. A file that is just being created has none yet. */
export function hasFlows(file: string): boolean {
  if (!existsSync(resolve(file))) return false;
  const db = openDatabase(resolve(file));
  try {
    return db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'flow_ends'").get() !== undefined;
  } catch (error) {
    if (isBusy(error)) return false;
    throw translate(error, `sqlite:${file}`);
  } finally {
    db.close();
  }
}

export class SqliteJournal implements Journal {
  readonly #statements = new Map<string, Statement>();
  readonly #token = randomBytes(9).toString('base64url');
  #flow = 0;

  constructor(
    private readonly db: Database,
    private readonly shown: string,
    private readonly timeout: number,
  ) {}

  async list(): Promise<FlowInfo[]> {
    return this.#sql('SELECT info, state FROM flows ORDER BY n').all().map(readInfo);
  }

  async get(id: string): Promise<FlowInfo | undefined> {
    const row = this.#sql('SELECT info, state FROM flows WHERE id = ?').get(id);
    return row && readInfo(row);
  }

  async begin(info: FlowInfo, definition: string): Promise<void> {
    this.#flow = await this.#transaction(() => {
      const insert = 'INSERT INTO flows (id, state, info, definition, holder, until) VALUES (?, ?, ?, ?, ?, ?)';
      const until = Date.now() + HOLD;
      const { lastInsertRowid } = this.#sql(insert).run(
        info.id,
        info.state,
        JSON.stringify(info),
        definition,
        this.#token,
        until,
      );
      return Number(lastInsertRowid);
    });
  }

  async takeOver(id: string, by: { host: string; pid: number }, dead: boolean): Promise<boolean> {
    return this.#transaction(() => {
      const row = this.#sql('SELECT n, info, state, holder, until FROM flows WHERE id = ?').get(id);
      const held = row && row.holder !== null && (row.until as number) >= Date.now();
      if (!row || (held && !dead)) return false;
      const info = JSON.stringify({ ...readInfo(row), ...by, state: 'running' });
      const take = `UPDATE flows SET counts = NULL, running = NULL, holder = ?, until = ?, cancel = 0, state = 'running', info = ? WHERE n = ?`;
      this.#sql(take).run(this.#token, Date.now() + HOLD, info, row.n!);
      this.#flow = row.n as number;
      return true;
    });
  }

  async definition(id: string): Promise<string | undefined> {
    return this.#sql('SELECT definition FROM flows WHERE id = ?').get(id)?.definition as string | undefined;
  }

  async ends(id: string): Promise<NodeEnd[]> {
    return (await this.endsAfter(id, 0)).ends;
  }

  async endsAfter(id: string, position: number): Promise<{ ends: NodeEnd[]; position: number }> {
    const after = 'SELECT n, body FROM flow_ends WHERE flow = (SELECT n FROM flows WHERE id = ?) AND n > ? ORDER BY n';
    const rows = this.#sql(after).all(id, position);
    const ends = rows.flatMap(({ body }) => decodeEnds(JSON.parse(body as string)));
    return { ends, position: (rows.at(-1)?.n as number | undefined) ?? position };
  }

  async watchAll(most: number): Promise<WatchedFlow[]> {
    const newest = `SELECT ${WATCHED} FROM flows ORDER BY n DESC LIMIT ?`;
    return this.#sql(newest).all(Date.now(), most).map(readWatched);
  }

  async watch(id: string): Promise<(WatchedFlow & Pick<RunnerReport, 'running'>) | undefined> {
    const row = this.#sql(`SELECT ${WATCHED}, running FROM flows WHERE id = ?`).get(Date.now(), id);
    return row && { ...readWatched(row), running: decodeRunning((row.running ?? undefined) as string | undefined) };
  }

  /** Synchronous, because dependents are waiting; it waits only while another process has locked the file. */
  write(ends: readonly NodeEnd[]): void | Promise<void> {
    const body = encodeEnds(ends);
    const work = () => {
      const row = this.#sql('SELECT holder FROM flows WHERE n = ?').get(this.#flow);
      if (row?.holder !== this.#token) throw new CroreError('LEASE_LOST', 'another runner has taken over this flow');
      this.#sql('INSERT INTO flow_ends (flow, body) VALUES (?, ?)').run(this.#flow, body);
    };
    try {
      this.#once(work);
    } catch (error) {
      if (!isBusy(error)) throw translate(error, this.shown);
      return this.#transaction(work);
    }
  }

  async hold(report?: () => RunnerReport): Promise<'held' | 'cancel' | 'lost'> {
    const { counts, running } = report?.() ?? {};
    return this.#transaction(() => {
      const renew = 'UPDATE flows SET until = ?, counts = ?, running = ? WHERE n = ? AND holder = ? RETURNING cancel';
      const said = [counts ? JSON.stringify(counts) : null, running ? encodeRunning(running) : null] as const;
      const row = this.#sql(renew).get(Date.now() + HOLD, ...said, this.#flow, this.#token);
      return row === undefined ? 'lost' : row.cancel === 1 ? 'cancel' : 'held';
    });
  }

  async finish(state: FlowState, counts: Record<string, number>): Promise<void> {
    await this.#transaction(() => {
      const row = this.#sql('SELECT info, state FROM flows WHERE n = ? AND holder = ?').get(this.#flow, this.#token);
      if (!row) return;
      const info = JSON.stringify({ ...readInfo(row), state, counts, finished: Date.now() });
      this.#sql(`UPDATE flows SET state = ?, info = ?, ${UNHELD} WHERE n = ?`).run(state, info, this.#flow);
    });
  }

  async cancel(id: string): Promise<boolean> {
    return this.#transaction(() => {
      const asked = this.#sql("UPDATE flows SET cancel = 1 WHERE id = ? AND state = 'running' AND until >= ?").run(
        id,
        Date.now(),
      );
      if (Number(asked.changes) === 1) return true;
      const unheld =
        "UPDATE flows SET state = 'cancelled' WHERE id = ? AND state IN ('running', 'failed', 'interrupted')";
      return Number(this.#sql(unheld).run(id).changes) === 1;
    });
  }

  async isHeld(id: string): Promise<boolean> {
    const row = this.#sql('SELECT 1 AS held FROM flows WHERE id = ? AND holder IS NOT NULL AND until >= ?').get(
      id,
      Date.now(),
    );
    return row !== undefined;
  }

  async forget(id: string): Promise<void> {
    await this.#transaction(() => {
      this.#sql('DELETE FROM flow_ends WHERE flow = (SELECT n FROM flows WHERE id = ?)').run(id);
      this.#sql('DELETE FROM flows WHERE id = ?').run(id);
    });
  }

  async recall(name: string): Promise<Map<string, Memory>> {
    const rows = this.#sql('SELECT node, body FROM flow_memories WHERE name = ?').all(name);
    return new Map(rows.map(({ node, body }) => [node as string, JSON.parse(body as string) as Memory]));
  }

  async remember(name: string, memories: readonly [string, Memory][]): Promise<void> {
    await this.#transaction(() => {
      const put = this.#sql('INSERT OR REPLACE INTO flow_memories (name, node, body) VALUES (?, ?, ?)');
      for (const [node, memory] of memories) put.run(name, node, JSON.stringify(memory));
    });
  }

  async close(): Promise<void> {
    this.#statements.clear();
    this.db.close();
  }

  #sql(text: string): Statement {
    const known = this.#statements.get(text);
    if (known) return known;
    const statement = this.db.prepare(text);
    this.#statements.set(text, statement);
    return statement;
  }

  async #transaction<T>(work: () => T): Promise<T> {
    const deadline = performance.now() + this.timeout;
    for (;;) {
      try {
        return this.#once(work);
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw translate(error, this.shown);
        await pause(1 + Math.random() * 10);
      }
    }
  }

  #once<T>(work: () => T): T {
    this.#sql('BEGIN IMMEDIATE').run();
    try {
      const value = work();
      this.#sql('COMMIT').run();
      return value;
    } catch (error) {
      try {
        this.db.exec('ROLLBACK');
      } catch {
        // SQLite has already rolled back.
      }
      throw error;
    }
  }
}

const UNHELD = 'holder = NULL, until = 0, counts = NULL, running = NULL';
/** With the time as its parameter. */
const WATCHED = 'info, state, counts, holder IS NOT NULL AND until >= ? AS held';

function readWatched(row: Row): WatchedFlow {
  const counts = row.counts ? { counts: JSON.parse(row.counts as string) as RunnerReport['counts'] } : {};
  return { info: readInfo(row), held: row.held === 1, ...counts };
}

function readInfo(row: Row): FlowInfo {
  return { ...(JSON.parse(row.info as string) as FlowInfo), state: row.state as FlowState };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
