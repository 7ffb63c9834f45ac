import { CroreError } from '../../errors.js';
import { redactUrl } from '../../redact.js';
import { PostgresClient } from './connection/client.js';
import { driverOptions, type PostgresUrl } from './connection/options.js';
import { Signals } from './connection/signals.js';
import { migrate, SchemaNames } from './schema.js';
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
  const names = new SchemaNames(parsed.schema);
  const driver = driverOptions(parsed, options.timeout);
  const client = new PostgresClient(driver, redactUrl(url), names.quoted, options.timeout);
  try {
    const { skew, warnings } = await inspect(client);
    await migrate(client, names);
    const view = new View(client, new Signals(driver, names.channel), skew, options.clock);
    return new PostgresStore({ view, warnings, threadUrl: url });
  } catch (error) {
    await client.close();
    throw error;
  }
}

const SERVER = `select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding,
  current_setting('default_transaction_isolation') as isolation, pg_is_in_recovery() as standby,
  current_setting('synchronous_commit') as sync, current_setting('fsync') as fsync,
  floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now`;

/** Refuses a server that cannot be a store; measures its clock, and returns warnings about settings that could lose accepted work. */
async function inspect(client: PostgresClient): Promise<{ skew: number; warnings: string[] }> {
  const before = Date.now();
  const [row] = await client.read(SERVER, []);
  const skew = (row!.now as number) - Math.round((before + Date.now()) / 2);
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
  return { skew, warnings };
}
