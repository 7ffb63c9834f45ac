import type { TestProject } from 'vitest/node';
import { RedisServer } from './redis.js';

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string;
  }
}

/** One Redis for all test files that do not need their own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const redis = await RedisServer.start();
  project.provide('redisUrl', redis.url);
  return () => redis.stop();
}
