import { CroreError } from '../../errors.js';
import { redactUrl } from '../../redact.js';
import { type Connected, connect } from '../../store/postgres/connect.js';
import type { PostgresUrl } from '../../store/postgres/connection/options.js';
import type { Layout } from '../../store/postgres/migration.js';
import { parseStoreUrl } from '../../store/url.js';

const SQL = new URL('./sql/', import.meta.url);
/** The checks of options are those of a store. */
const STORE_SQL = new URL('../../store/postgres/sql/transactions/', import.meta.url);

const OUTBOX_LAYOUT: Layout = {
  what: 'outbox',
  formatTable: 'outbox_format',
  steps: [[new URL('tables.sql', SQL)]],
  functions: () => [
    new URL('options.sql', STORE_SQL),
    new URL('spec.sql', STORE_SQL),
    new URL('writing.sql', SQL),
    new URL('relaying.sql', SQL),
  ],
  forApplications: new Set(['add', 'write_in', 'identity']),
};

export const OUTBOX_FORMAT = OUTBOX_LAYOUT.steps.length;
/** Time limit of a call in milliseconds. */
export const TIMEOUT = 10_000;
const DEFAULT_SCHEMA = 'crore_outbox';

export interface ConnectedOutbox extends Connected {
  parsed: PostgresUrl;
}

/** Connects to the outbox that a URL names; creates its schema if it is missing. */
export async function connectOutbox(url: string): Promise<ConnectedOutbox> {
  const parsed = parseStoreUrl(url);
  if (parsed.kind !== 'postgres') {
    const known = 'give a postgres:// URL, or a connection to a SQLite file';
    throw new CroreError('BAD_URL', `there is no outbox at '${redactUrl(url)}': ${known}`);
  }
  // A store and an outbox are different schemas, and have different defaults.
  const named = /[?&]schema=/.test(url) ? parsed : { ...parsed, schema: DEFAULT_SCHEMA };
  const connected = await connect(url, named, { timeout: TIMEOUT, connections: 1, layout: OUTBOX_LAYOUT });
  return { ...connected, parsed: named };
}
