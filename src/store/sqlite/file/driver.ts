import { createRequire } from 'node:module';
import { CroreError } from '../../../errors.js';

/** The part we use of `node:sqlite` and of the package for older Node versions; the two have the same API. */
export type Value = null | number | bigint | string | Uint8Array;
export type Row = Record<string, Value>;

export interface Statement {
  run(...values: Value[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  get(...values: Value[]): Row | undefined;
  all(...values: Value[]): Row[];
  /** Returns rows as arrays, which cost half as much as objects. */
  setReturnArrays(on: boolean): void;
}

export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

/** A library such as `node:sqlite`. */
export interface SqliteLibrary {
  DatabaseSync: new (file: string, options?: { readOnly?: boolean; timeout?: number }) => Database;
}

/** Older libraries can lose committed pages when a WAL is reset. */
const OLDEST = [3, 51, 3] as const;

let loaded: { name: string; library: SqliteLibrary } | undefined;

/**
 * Loads `node:sqlite` if its SQLite is recent enough, else the packaged one. Loaded on first use, so Redis users pay
 * nothing.
 */
export function loadLibrary(): { name: string; library: SqliteLibrary } {
  if (loaded) return loaded;
  const require = createRequire(import.meta.url);
  const names = ['node:sqlite', '@photostructure/sqlite'];
  const seen: string[] = [];
  for (const name of names) {
    try {
      const library = quietly(() => require(name)) as SqliteLibrary;
      const version = versionOf(library);
      if (isNewEnough(version)) {
        loaded = { name, library };
        return loaded;
      }
      seen.push(`${name} has SQLite ${version}`);
    } catch (error) {
      seen.push(`${name}: ${(error as Error).message.split('\n')[0]}`);
    }
  }
  throw new CroreError('STORE_UNSUPPORTED', `SQLite ${OLDEST.join('.')} or newer is required: ${seen.join('; ')}`);
}

/** Suppresses Node's warning that its SQLite is experimental, which users did not ask for. */
function quietly<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] !== 'ExperimentalWarning') Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}

function versionOf(candidate: SqliteLibrary): string {
  const db = new candidate.DatabaseSync(':memory:');
  try {
    return String(db.prepare('SELECT sqlite_version() AS version').get()?.version);
  } finally {
    db.close();
  }
}

export function isNewEnough(version: string): boolean {
  const parts = version.split('.').map(Number);
  for (let i = 0; i < OLDEST.length; i++) {
    const difference = (parts[i] ?? 0) - OLDEST[i]!;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

/** Opens a file with a lock timeout of a few milliseconds, as long as a synchronous driver may block the event loop. */
export function openDatabase(file: string, given?: SqliteLibrary): Database {
  const { DatabaseSync } = given ?? loadLibrary().library;
  return new DatabaseSync(file, { timeout: 2 });
}

/** Checks a library that the application wants Crore to use, so that both can share connections to a file. */
export function checkLibrary(given: unknown): SqliteLibrary {
  const library = given as SqliteLibrary;
  if (typeof library?.DatabaseSync !== 'function')
    throw new CroreError('BAD_OPTION', "sqlite must be a module with DatabaseSync, such as 'node:sqlite'");
  const version = versionOf(library);
  if (isNewEnough(version)) return library;
  const needed = `SQLite ${OLDEST.join('.')} or newer is required, because older ones can lose commits`;
  throw new CroreError('STORE_UNSUPPORTED', `sqlite: the given library has SQLite ${version}: ${needed}`);
}
