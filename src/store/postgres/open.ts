import { CroreError } from '../../errors.js';
import { connect, connected } from './connect.js';
import { listenerOptions, type PostgresUrl } from './connection/options.js';
import { Signals } from './connection/signals.js';
import { FORMAT, printedScript } from './migration.js';
import { migrate, SchemaNames } from './schema.js';
import { PostgresStore } from './store.js';
import { View } from './view.js';

export interface OpenPostgresOptions {
  /** Time limit of a single call in milliseconds. */
  timeout: number;
  clock?: () => number;
}

export async function openPostgres(
  url: string,
  parsed: PostgresUrl,
  options: OpenPostgresOptions,
): Promise<PostgresStore> {
  const { client, names, identity, skew, pooled, warnings } = await connect(url, parsed, { timeout: options.timeout });
  const listener = listenerOptions(parsed, options.timeout, pooled);
  const view = new View(client, new Signals(listener, names.channel), skew, options.clock, pooled);
  return new PostgresStore({ view, identity, warnings, threadUrl: url });
}

/** Brings the schema to the current format, and gives a role what it needs to use it. */
export async function migratePostgres(
  url: string,
  parsed: PostgresUrl,
  { timeout, role }: { timeout: number; role?: string },
): Promise<{ from: number; to: number }> {
  return connected(url, parsed, { timeout }, async ({ client, names }) => {
    const from = await migrate(client, names, role);
    await client.close();
    return { from, to: FORMAT };
  });
}

export function printPostgresSchema(schema: string, from: number, role?: string): string {
  if (from >= FORMAT) throw new CroreError('BAD_OPTION', `from must be a format before ${FORMAT}, the current one`);
  return printedScript(new SchemaNames(schema), from, role);
}
