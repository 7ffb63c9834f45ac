import { statSync } from 'node:fs';
import { CroreError } from '../../errors.js';
import type { NewJob } from '../../job/job.js';
import type { AddOutcome, Capacity } from '../store.js';
import type { Database } from './file/driver.js';
import { type ExternalConnection, wrapConnection } from './file/external-connection.js';
import { isBusy, translate } from './file/failure.js';
import { APPLICATION_ID, FORMAT, TABLES } from './file/schema.js';
import { Tables } from './tables.js';
import { add } from './verbs/add.js';

const SHADOWS = `SELECT name FROM temp.sqlite_schema WHERE name IN ('${TABLES.join("', '")}')`;

interface CheckedConnection {
  db: ExternalConnection;
  tables: Tables;
  /** The connection has been verified to respect the locks of our own connection. */
  trusted: boolean;
}

/** Adds jobs through connections of the application, inside its transactions. */
export class ExternalConnections {
  readonly #checked = new WeakMap<object, CheckedConnection>();

  constructor(
    /** Our own connection. */
    private readonly own: Database,
    private readonly path: string | undefined,
    private readonly shown: string,
  ) {}

  /** The jobs exist if and only if the transaction of `connection` commits. */
  add(connection: unknown, queue: string, jobs: readonly NewJob[], limits: Capacity, now: number): AddOutcome[] {
    if (this.path === undefined) {
      throw new CroreError(
        'STORE_UNSUPPORTED',
        `addIn: ${this.shown} is in memory and cannot be shared with another connection`,
      );
    }
    try {
      const external = this.#external(connection, this.path);
      return external.db.atomically(() => {
        this.#check(external);
        const outcomes = add(external.tables, external.tables.ensure(queue), jobs, limits, now);
        external.tables.queuesWithNewEvents.clear(); // listeners are notified as for any external commit
        return outcomes;
      });
    } catch (error) {
      throw translate(error, this.shown);
    }
  }

  #external(connection: unknown, path: string): CheckedConnection {
    const known = this.#checked.get(connection as object);
    if (known) return known;
    const db = wrapConnection(connection, 'addIn');
    const { file } = db;
    if (!isSame(file, path)) {
      const other = file === '' ? 'a database in memory' : file;
      throw new CroreError(
        'BAD_OPTION',
        `addIn: the connection is to ${other}, the queue is in ${path}; across files use an outbox`,
      );
    }
    const external = { db, tables: new Tables(db), trusted: false };
    this.#checked.set(connection as object, external);
    return external;
  }

  #check(external: CheckedConnection): void {
    // Takes the write lock, which also brings the connection up to the latest commit or fails if it cannot.
    external.tables.sql('UPDATE queues SET n = n WHERE n = -1').run();
    if (!external.trusted) this.#checkLocks();
    external.trusted = true;
    const pragma = (name: string) => external.tables.sql(`PRAGMA ${name}`).get()?.[name] as number;
    const version = pragma('user_version');
    if (version !== FORMAT || pragma('application_id') !== APPLICATION_ID) {
      const code = version > FORMAT ? 'STORE_NEWER' : 'STORE_UNSUPPORTED';
      throw new CroreError(
        code,
        `addIn: ${this.shown} has format ${version}, this version of Crore supports ${FORMAT}`,
      );
    }
    const shadow = external.tables.sql(SHADOWS).get();
    if (shadow) {
      throw new CroreError(
        'BAD_OPTION',
        `addIn: a temporary table '${shadow.name}' of the connection hides the table of Crore`,
      );
    }
  }

  /**
   * The external connection holds the write lock: if our own connection can take it too, the two use different copies
   * of SQLite, which cannot see each other's locks within one process and would eventually corrupt the file.
   */
  #checkLocks(): void {
    try {
      this.own.exec('BEGIN IMMEDIATE');
    } catch (error) {
      if (isBusy(error)) return;
      throw error;
    }
    this.own.exec('ROLLBACK');
    throw new CroreError(
      'STORE_UNSUPPORTED',
      `addIn: the connection to ${this.shown} uses another copy of SQLite in this process than Crore, and the two do not see each other's locks; open it with the library that Crore uses (node:sqlite or @photostructure/sqlite), or use an outbox in a file of its own`,
    );
  }
}

function isSame(file: string, path: string): boolean {
  if (file === '') return false;
  try {
    const [a, b] = [statSync(file, { bigint: true }), statSync(path, { bigint: true })];
    return a.dev === b.dev && a.ino === b.ino;
  } catch {
    return false;
  }
}
