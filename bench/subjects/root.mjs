// Packages of the library under test, so that ceilings use the very drivers it uses.
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../package.json', import.meta.url));

/** An ioredis connection to the benchmark's own server. */
export function connect({ host, port }) {
  const { Redis } = require('ioredis');
  return new Redis({ host, port, maxRetriesPerRequest: null });
}

/** `node:sqlite` where this Node has it, else its packaged twin. */
export function openSqlite(file) {
  const { DatabaseSync } = sqlite();
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  return db;
}

function sqlite() {
  try {
    return require('node:sqlite');
  } catch {
    return require('@photostructure/sqlite');
  }
}
