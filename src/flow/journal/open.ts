import { CroreError } from '../../errors.js';
import { parseStoreUrl } from '../../store/url.js';
import type { Journal } from './journal.js';

const TIMEOUT = 10_000;

/** Opens the journal of a store; the clients for Redis and PostgreSQL are loaded only when a URL needs them. */
export async function openJournal(url: string, options: { relaxed?: boolean } = {}): Promise<Journal> {
  const parsed = parseStoreUrl(url);
  if (parsed.kind === 'sqlite') {
    const { openSqliteJournal } = await import('./sqlite-journal.js');
    return openSqliteJournal(parsed.file, { timeout: TIMEOUT, relaxed: options.relaxed });
  }
  if (parsed.kind === 'grpc') {
    throw new CroreError(
      'STORE_UNSUPPORTED',
      'the state of a flow cannot be kept on a job server: use its store, sqlite:FILE, redis://… or postgres://…',
    );
  }
  if (parsed.kind === 'postgres') {
    const { openPostgresJournal } = await import('./postgres-journal.js');
    return openPostgresJournal(url, parsed, TIMEOUT);
  }
  const { openRedisJournal } = await import('./redis-journal.js');
  return openRedisJournal(url, parsed, TIMEOUT);
}

/** Opens the journal of a store to look at its flows; undefined where there are none, or none can be. */
export async function openExistingJournal(url: string): Promise<Journal | undefined> {
  const parsed = parseStoreUrl(url);
  if (parsed.kind === 'grpc') return undefined;
  if (parsed.kind === 'sqlite') {
    if (parsed.file === ':memory:') return undefined;
    const { hasFlows } = await import('./sqlite-journal.js');
    if (!hasFlows(parsed.file)) return undefined;
  }
  return openJournal(url);
}
