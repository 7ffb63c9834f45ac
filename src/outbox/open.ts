import type { Connection } from '../store/sqlite/file/external-connection.js';
import { checkOutboxOptions, type OutboxOptions } from './outgoing.js';
import type { PostgresOutbox } from './postgres/outbox.js';
import { Outbox, prepareLedger } from './sqlite/outbox.js';

/**
 * Opens the outbox in an application's SQLite file, through any connection of the application; creates missing tables.
 * Not inside a transaction: a rollback would remove the tables again.
 */
export function openOutbox(connection: Connection, options?: OutboxOptions): Outbox;
/**
 * Opens the outbox in a schema on PostgreSQL, `postgres://user@host/database?schema=crore_outbox`; creates it if it is missing. Jobs are written
 * through connections of the application, in its transactions.
 */
export function openOutbox(url: string, options?: OutboxOptions): Promise<PostgresOutbox>;
export function openOutbox(place: Connection | string, options: OutboxOptions = {}): Outbox | Promise<PostgresOutbox> {
  const maxPayload = checkOutboxOptions(options);
  if (typeof place === 'string') return openOnPostgres(place, maxPayload);
  return new Outbox(prepareLedger(place, 'openOutbox'), maxPayload);
}

/** The driver is loaded only by those who need it. */
async function openOnPostgres(url: string, maxPayload: number): Promise<PostgresOutbox> {
  const { openPostgresOutbox } = await import('./postgres/outbox.js');
  return openPostgresOutbox(url, maxPayload);
}
