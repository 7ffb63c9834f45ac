import { CroreError } from '../errors.js';
import { redactUrl } from '../redact.js';
import { parseStoreUrl, type StoreUrl } from './url.js';

/** Tables that an administrator creates: only PostgreSQL has them. Files and Redis need nothing. */

/** The SQL that creates the schema of a store, or brings it from a format to the current one. Nothing is connected. */
export async function printSchema(url: string, { from = 0, role }: { from?: number; role?: string }): Promise<string> {
  const { schema } = postgresUrl(url);
  const { printPostgresSchema } = await import('./postgres/open.js');
  return printPostgresSchema(schema, from, role);
}

/** Creates or migrates the schema; returns the format that it had, 0 if there was none, and the one that it has. */
export async function migrateSchema(
  url: string,
  options: { timeout: number; role?: string },
): Promise<{ from: number; to: number }> {
  const parsed = postgresUrl(url);
  const { migratePostgres } = await import('./postgres/open.js');
  return migratePostgres(url, parsed, options);
}

function postgresUrl(url: string): Extract<StoreUrl, { kind: 'postgres' }> {
  const parsed = parseStoreUrl(url);
  if (parsed.kind === 'postgres') return parsed;
  throw new CroreError('STORE_UNSUPPORTED', `${redactUrl(url)} has no schema: only stores on postgres:// have one`);
}
