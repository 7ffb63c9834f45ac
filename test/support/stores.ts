import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

export const STORES: [string, () => Promise<TestStore>][] = [
  ['sqlite', freshSqlite],
  ['redis', freshRedis],
];
