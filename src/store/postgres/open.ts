import { CroreError } from '../../errors.js';
import { redactUrl } from '../../redact.js';
import { PostgresClient } from './connection/client.js';
import { driverOptions, listenerOptions, type PostgresUrl } from './connection/options.js';
import { Signals } from './connection/signals.js';
import { FORMAT, printedScript } from './migration.js';
import { explainMissing, migrate, SchemaNames } from './schema.js';
import { PostgresStore } from './store.js';
import { View } from './view.js';

const OLDEST = 13;

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
  return connected(url, parsed, options.timeout, async ({ client, names, skew, pooled, warnings }) => {
    await migrate(client, names);
    client.explain = () => explainMissing(client, names);
    const listener = listenerOptions(parsed, options.timeout, pooled);
    const view = new View(client, new Signals(listener, names.channel), skew, options.clock);
    return new PostgresStore({ view, warnings, threadUrl: url });
  });
}

/** Brings the schema to the current format, and gives a role what it needs to use it. */
export async function migratePostgres(
  url: string,
  parsed: PostgresUrl,
  { timeout, role }: { timeout: number; role?: string },
): Promise<{ from: number; to: number }> {
  return connected(url, parsed, timeout, async ({ client, names }) => {
    const from = await migrate(client, names, role);
    await client.close();
    return { from, to: FORMAT };
  });
}

export function printPostgresSchema(schema: string, from: number, role?: string): string {
  if (from >= FORMAT) throw new CroreError('BAD_OPTION', `from must be a format before ${FORMAT}, the current one`);
  return printedScript(new SchemaNames(schema), from, role);
}

interface Connected extends Inspected {
  client: PostgresClient;
  names: SchemaNames;
}

/** Closes the connections if it fails. */
async function connected<T>(
  url: string,
  parsed: PostgresUrl,
  timeout: number,
  work: (connected: Connected) => Promise<T>,
): Promise<T> {
  const names = new SchemaNames(parsed.schema);
  const client = new PostgresClient(driverOptions(parsed, timeout), redactUrl(url), names, timeout);
  try {
    const found = await inspect(client);
    client.prepare = parsed.prepare ?? !found.pooled;
    if (found.pooled && parsed.listen === undefined) found.warnings.push(POOLED);
    return await work({ client, names, ...found });
  } catch (error) {
    await client.close();
    throw error;
  }
}

const POOLED =
  'there is a pooler between this process and PostgreSQL: it looks for signals every second, because notifications need a direct ' +
  'connection (listen=HOST:PORT in the URL, or listen=true if the pooler keeps a connection for a whole session)';

const SERVER = `select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding,
  current_setting('default_transaction_isolation') as isolation, pg_is_in_recovery() as standby,
  pg_backend_pid() as pid, current_setting('synchronous_commit') as sync, current_setting('fsync') as fsync`;

const CLOCK = 'select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now';

interface Inspected {
  /** The server's clock minus ours. */
  skew: number;
  /** Another process of the server answers than the one that the connection was made to. */
  pooled: boolean;
  warnings: string[];
}

/** By the shortest of three round trips: a long one, or one that has to connect first, says little about when the server looked. */
async function measureSkew(client: PostgresClient): Promise<number> {
  let best = { took: Number.POSITIVE_INFINITY, skew: 0 };
  for (let i = 0; i < 3; i++) {
    const [before, began] = [Date.now(), performance.now()];
    const [row] = await client.read(CLOCK, []);
    const took = performance.now() - began;
    if (took < best.took) best = { took, skew: (row!.now as number) - Math.round(before + took / 2) };
  }
  return best.skew;
}

/** Refuses a server that cannot be a store; measures its clock, and returns warnings about settings that could lose accepted work. */
async function inspect(client: PostgresClient): Promise<Inspected> {
  const { rows, pid } = await client.ask(SERVER, []);
  const [row] = rows;
  const { version, encoding, isolation, standby, sync, fsync } = row as Record<string, unknown>;
  const refuse = (why: string) => new CroreError('STORE_UNSUPPORTED', `${client.shown} ${why}`);
  const major = Math.floor((version as number) / 10_000);
  if (major < OLDEST) throw refuse(`is PostgreSQL ${major}, Crore needs ${OLDEST} or newer`);
  if (encoding !== 'UTF8') throw refuse(`has the encoding ${encoding}, Crore needs UTF8`);
  if (isolation !== 'read committed')
    throw refuse(`has default_transaction_isolation '${isolation}': set it to 'read committed' for the role of Crore`);
  if (standby) throw new CroreError('STORE_READONLY', `${client.shown} is a standby: connect to the primary`);
  const warnings: string[] = [];
  if (sync === 'off') warnings.push('synchronous_commit is off: a crash of the server loses jobs of the last moment');
  if (fsync === 'off') warnings.push('fsync is off: a crash of the machine may lose or destroy jobs');
  return { skew: await measureSkew(client), pooled: row!.pid !== pid, warnings };
}
