import type { TestProject } from 'vitest/node';
import { PostgresServer } from './postgres.js';
import { RedisServer } from './redis.js';

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string;
    /** Without parameters: every test file uses a schema of its own. */
    postgresUrl: string;
  }
}

/** One Redis and one PostgreSQL for all test files that do not need their own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const [redis, postgres] = await Promise.all([RedisServer.start(), PostgresServer.start()]);
  project.provide('redisUrl', redis.url);
  project.provide('postgresUrl', postgres.url);
  return async () => {
    await redis.stop();
    await postgres.stop();
  };
}
