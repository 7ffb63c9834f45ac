import type { RawTaskStore } from './raw-store.js';
import type { GivenClients } from './redis/connection/connect.js';
import type { SqliteLibrary } from './sqlite/file/driver.js';
import { openSqlite } from './sqlite/open.js';
import type { Store } from './store.js';
import { parseStoreUrl } from './url.js';

export interface OpenStoreOptions {
  /** Time limit of a single call in milliseconds. */
  timeout: number;
  /** Replaces the store's clock in tests. */
  clock?: () => number;
  /** For heartbeats only: they need no fsync of their own. */
  relaxed?: boolean;
  /** The application's SQLite, for a store in a SQLite file. */
  library?: SqliteLibrary;
}

/** Opens the store at a URL. The clients for Redis, PostgreSQL and a job server are loaded only when a URL needs them. */
export async function openStore(url: string, options: OpenStoreOptions): Promise<Store> {
  const parsed = parseStoreUrl(url);
  if (parsed.kind === 'sqlite') return openSqlite(parsed.file, { ...options, fast: parsed.relaxed });
  if (parsed.kind === 'grpc') {
    const { openGrpc } = await import('./grpc/open.js');
    return openGrpc(url, parsed, options);
  }
  if (parsed.kind === 'postgres') {
    const { openPostgres } = await import('./postgres/open.js');
    return openPostgres(url, parsed, options);
  }
  const { openRedis } = await import('./redis/open.js');
  return openRedis(url, parsed, options);
}

/** Opens Redis through connections that the application owns. */
export async function openClients(
  clients: GivenClients,
  prefix: string,
  options: OpenStoreOptions,
): Promise<RawTaskStore> {
  const { openGiven } = await import('./redis/open.js');
  return openGiven(clients, prefix, options);
}
