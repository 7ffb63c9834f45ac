import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { inject } from 'vitest';
import { RedisServer } from './redis.js';

/** A separate store for a test that breaks things. */
export interface TestStore {
  name: string;
  url: string;
  stop: () => Promise<void>;
}

export async function freshSqlite(): Promise<TestStore> {
  const dir = mkdtempSync(join(tmpdir(), 'crore-test-'));
  return {
    name: 'sqlite',
    url: `sqlite:${join(dir, 'crore.db')}`,
    stop: async () => rmSync(dir, { recursive: true, force: true }),
  };
}

export async function freshRedis(): Promise<TestStore> {
  const redis = await RedisServer.start();
  return { name: 'redis', url: redis.url, stop: () => redis.stop() };
}

/** Drops its schema at the end; the server is that of all test files. */
export async function freshPostgres(): Promise<TestStore> {
  const server = inject('postgresUrl');
  const schema = `test_${randomUUID().slice(0, 8)}`;
  const stop = async () => {
    const sql = postgres(server, { max: 1, onnotice: () => {} });
    await sql`drop schema if exists ${sql(schema)} cascade`;
    await sql.end({ timeout: 1 });
  };
  return { name: 'postgres', url: `${server}?schema=${schema}`, stop };
}

const SQLITE_AND_REDIS: [string, () => Promise<TestStore>][] = [
  ['sqlite', freshSqlite],
  ['redis', freshRedis],
];

/** For the tests that say most about a store. */
export const ALL_STORES: typeof SQLITE_AND_REDIS = [...SQLITE_AND_REDIS, ['postgres', freshPostgres]];

/** For the others, which take too long on three stores; `CRORE_ALL_STORES=1` runs them on all. */
export const STORES = process.env.CRORE_ALL_STORES ? ALL_STORES : SQLITE_AND_REDIS;
