import { openDatabase } from '../../dist/store/sqlite/file/driver.js';

/** A connection as an application would open it, with the library that is available. */
export type AppDatabase = ReturnType<typeof openDatabase>;

export function openApp(file: string): AppDatabase {
  const db = openDatabase(file);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000');
  return db;
}

/** Runs `work` in a transaction, which is rolled back if it throws. */
export function transaction<T>(db: AppDatabase, work: () => T): T {
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}
