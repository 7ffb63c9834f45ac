import { closeSync, existsSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { CommitWatcher } from './file/commit-watcher.js';
import { Committer } from './file/committer.js';
import { type Database, openDatabase, type SqliteLibrary } from './file/driver.js';
import { translate } from './file/failure.js';
import { FileIdentity } from './file/file-identity.js';
import { migrate } from './file/schema.js';
import { SqliteStore } from './store.js';
import { Tables } from './tables.js';

export interface OpenSqliteOptions {
  /** How many milliseconds a call may wait for a file that other processes have locked. */
  timeout: number;
  clock?: () => number;
  /** Heartbeats need no fsync of their own: losing the last second of them in a power failure is harmless. */
  relaxed?: boolean;
  /** The URL asks for commits that do not wait for the disk: the same, and worth a warning. */
  fast?: boolean | undefined;
  /** The application's SQLite. A thread cannot use it, so the main loop sends the heartbeats. */
  library?: SqliteLibrary;
}

const FAST =
  'synchronous is normal: a power failure or a crash of the system may lose the jobs and results of the last moment';

export async function openSqlite(file: string, options: OpenSqliteOptions): Promise<SqliteStore> {
  const inMemory = file === ':memory:';
  const path = inMemory ? file : resolve(file);
  const shown = `sqlite:${file}`;
  const db = await openFile(path, inMemory, shown, options);
  const tables = new Tables(db);
  const identity = inMemory ? undefined : new FileIdentity(path, shown);
  const check = () => identity?.check();
  return new SqliteStore({
    tables,
    committer: new Committer(db, shown, options.timeout, check),
    check,
    shown,
    clock: options.clock ?? Date.now,
    watcher: inMemory ? undefined : (notify) => new CommitWatcher(path, tables, notify),
    path: inMemory ? undefined : path,
    warnings: options.fast ? [FAST] : [],
    threadUrl: inMemory || options.library ? undefined : `sqlite:${path}`,
  });
}

/** Another process may be creating or migrating the same file: retries a busy file until the time is up. */
async function openFile(path: string, inMemory: boolean, shown: string, options: OpenSqliteOptions): Promise<Database> {
  const deadline = performance.now() + options.timeout;
  for (;;) {
    try {
      return prepareFile(path, inMemory, shown, options);
    } catch (error) {
      const failure = translate(error, shown);
      const busy = 'code' in failure && failure.code === 'STORE_BUSY';
      if (!busy || performance.now() > deadline) throw failure;
      await new Promise((again) => setTimeout(again, 5 + Math.random() * 20));
    }
  }
}

function prepareFile(path: string, inMemory: boolean, shown: string, options: OpenSqliteOptions): Database {
  // Jobs may contain secrets: only the owner may read the file, and SQLite gives its companion files the same mode.
  if (!inMemory && !existsSync(path)) closeSync(createFile(path));
  const db = openDatabase(path, options.library);
  try {
    // Only a new file takes this setting: it can give unused room back to the disk.
    db.exec('PRAGMA auto_vacuum = INCREMENTAL');
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${options.relaxed || options.fast ? 'NORMAL' : 'FULL'};
      PRAGMA wal_autocheckpoint = 10000; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -32000; PRAGMA mmap_size = 268435456;
      PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF`);
    migrate(db, shown);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function createFile(path: string): number {
  try {
    return openSync(path, 'a', 0o600);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw Object.assign(new Error(`cannot create the file (${code})`), {
      errcode: code === 'EROFS' || code === 'EACCES' ? 8 : 14,
    });
  }
}
