import { CroreError } from '../../../errors.js';
import type { Database, Statement, Value } from './driver.js';

/**
 * The part we use of a connection that the application opened: node:sqlite, @photostructure/sqlite and better-sqlite3
 * have it.
 */
export interface Connection {
  prepare(sql: string): {
    run(...values: Value[]): unknown;
    get(...values: Value[]): unknown;
    all(...values: Value[]): unknown[];
  };
}

/** How each driver reports an open transaction, and how to make its statements return plain values. */
interface Habits {
  isTransaction?: boolean;
  inTransaction?: boolean;
}
interface StatementHabits {
  setReadBigInts?(on: boolean): void;
  safeIntegers?(on: boolean): void;
  setReturnArrays?(on: boolean): void;
  raw?(on: boolean): void;
}

/** Gives a connection of the application the interface of our own. */
export class ExternalConnection implements Database {
  readonly #statements = new Map<string, Statement>();

  constructor(private readonly connection: Connection) {}

  /** Executes one statement. */
  exec(sql: string): void {
    const statement = this.#statements.get(sql) ?? this.prepare(sql);
    this.#statements.set(sql, statement);
    statement.run();
  }

  prepare(sql: string): Statement {
    const statement = this.connection.prepare(sql) as unknown as Statement & StatementHabits;
    // The application may have configured its connection to return BigInts or arrays; our code expects numbers.
    statement.setReadBigInts?.(false);
    statement.safeIntegers?.(false);
    if (typeof statement.setReturnArrays === 'function') {
      statement.setReturnArrays(false);
      return statement;
    }
    return {
      run: (...values) => statement.run(...values),
      get: (...values) => statement.get(...values),
      all: (...values) => statement.all(...values),
      setReturnArrays: (on) => (statement as StatementHabits).raw?.(on),
    };
  }

  /** Whether a transaction is open. */
  get inTransaction(): boolean {
    const { isTransaction, inTransaction } = this.connection as Habits;
    if (typeof isTransaction === 'boolean') return isTransaction;
    if (typeof inTransaction === 'boolean') return inTransaction;
    try {
      this.exec('BEGIN');
    } catch (error) {
      if (/within a transaction/.test((error as Error).message)) return true;
      throw error;
    }
    this.exec('ROLLBACK');
    return false;
  }

  /** Applies all of `work` or nothing: in a savepoint if a transaction is open, else in a transaction of its own. */
  atomically<T>(work: () => T): T {
    return this.inTransaction
      ? this.#around('SAVEPOINT crore', 'RELEASE crore', ['ROLLBACK TO crore', 'RELEASE crore'], work)
      : this.#around('BEGIN IMMEDIATE', 'COMMIT', ['ROLLBACK'], work);
  }

  /** Gives `work` one consistent snapshot. Not inside a transaction. */
  consistently<T>(work: () => T): T {
    return this.#around('BEGIN', 'COMMIT', ['ROLLBACK'], work);
  }

  #around<T>(begin: string, commit: string, undo: string[], work: () => T): T {
    this.exec(begin);
    try {
      const result = work();
      this.exec(commit);
      return result;
    } catch (error) {
      try {
        for (const sql of undo) this.exec(sql);
      } catch {
        // SQLite rolls back by itself after some errors; then there is nothing to undo.
      }
      throw error;
    }
  }

  /** The application owns the connection. */
  close(): void {}

  /** The file of the main database; empty for an in-memory database. */
  get file(): string {
    const list = this.prepare('PRAGMA database_list').all();
    return String(list.find((row) => row.name === 'main')?.file ?? '');
  }
}

export function wrapConnection(connection: unknown, what: string): ExternalConnection {
  if (
    connection === null ||
    typeof connection !== 'object' ||
    typeof (connection as Connection).prepare !== 'function'
  ) {
    throw new CroreError('BAD_OPTION', `${what} needs a SQLite connection: an object with prepare(sql)`);
  }
  return new ExternalConnection(connection as Connection);
}
