// Packages of the library under test, so that ceilings use exactly the drivers it uses.
import { createRequire } from 'node:module';

const OLDEST_SQLITE = '3.51.3';
const require = createRequire(new URL('../../package.json', import.meta.url));

/** An ioredis connection to the benchmark's own server. */
export function connect({ host, port }) {
  const { Redis } = require('ioredis');
  return new Redis({ host, port, maxRetriesPerRequest: null });
}

/** The driver and settings that the library uses itself. */
export function openSqlite(file) {
  const { DatabaseSync } = sqlite();
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  return db;
}

/** `node:sqlite` if its SQLite is new enough for the library, else the packaged equivalent. */
function sqlite() {
  try {
    const builtIn = require('node:sqlite');
    if (versionOf(builtIn).localeCompare(OLDEST_SQLITE, 'en', { numeric: true }) >= 0) return builtIn;
  } catch {
    // This Node version has none.
  }
  return require('@photostructure/sqlite');
}

function versionOf({ DatabaseSync }) {
  const db = new DatabaseSync(':memory:');
  const { version } = db.prepare('SELECT sqlite_version() AS version').get();
  db.close();
  return version;
}

/** A connection of the `postgres` driver to the benchmark's own server. */
export function connectPostgres({ host, port, user, database }, options = {}) {
  const postgres = require('postgres');
  return postgres({ host, port, user, database, max: 1, onnotice: () => {}, ...options });
}
