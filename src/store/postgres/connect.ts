import { CroreError } from '../../errors.js';
import { redactUrl } from '../../redact.js';
import { PostgresClient } from './connection/client.js';
import { driverOptions, type PostgresUrl } from './connection/options.js';
import type { Layout } from './migration.js';
import { explainMissing, migrate, SchemaNames } from './schema.js';

const OLDEST = 13;

export interface ConnectOptions {
  /** Time limit of a single call in milliseconds, unless it has its own. */
  timeout: number;
  /** How many connections at most. */
  connections?: number;
  /** What the schema consists of; default: a store. */
  layout?: Layout;
}

/** Connects to a server, refuses one that cannot be a store, and creates or migrates the schema. */
export function connect(url: string, parsed: PostgresUrl, options: ConnectOptions): Promise<Connected> {
  return connected(url, parsed, options, async (found) => {
    const { client, names } = found;
    await migrate(client, names);
    client.explain = () => explainMissing(client, names);
    return { ...found, identity: await client.value('identity', []) };
  });
}

interface Reached extends Inspected {
  client: PostgresClient;
  names: SchemaNames;
}

export interface Connected extends Reached {
  /** Tells the schema from any other, for calls on connections of the application. */
  identity: unknown;
}

/** Closes the connections if it fails. */
export async function connected<T>(
  url: string,
  parsed: PostgresUrl,
  { timeout, connections, layout }: ConnectOptions,
  work: (reached: Reached) => Promise<T>,
): Promise<T> {
  const names = new SchemaNames(parsed.schema, layout);
  const given = driverOptions(parsed, timeout);
  const driver = connections === undefined ? given : { ...given, max: connections };
  const client = new PostgresClient(driver, redactUrl(url), names, timeout);
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

/** Calls of their own, because connecting takes longer than reading the clock. The fastest says most. */
async function measureSkew(client: PostgresClient): Promise<number> {
  let best = { took: Number.POSITIVE_INFINITY, skew: 0 };
  for (let i = 0; i < 3 && best.took > 2; i++) {
    const before = Date.now();
    const [row] = await client.read(CLOCK, []);
    const after = Date.now();
    const skew = (row!.now as number) - Math.round((before + after) / 2);
    if (after - before < best.took) best = { took: after - before, skew };
  }
  return best.skew;
}
