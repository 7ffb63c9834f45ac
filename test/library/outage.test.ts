import { afterEach, expect, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

it('a Redis that is gone is reported once, in words: what is out of reach, since when, and what happens next', async () => {
  const redis = await RedisServer.start();
  cleanups.push(() => redis.stop());
  const lines: string[] = [];
  const log = (_fields: object, message: string) => void lines.push(message);
  const crore: Crore = await open(redis.url, { timeout: 500, logger: { warn: log, error: log } });
  cleanups.push(() => crore.close());
  lines.length = 0; // a warning about its persistence
  const ran: unknown[] = [];
  const queue = crore.queue('q');
  for (const name of ['q', 'r', 's'])
    await crore
      .queue(name)
      .work(async (job) => void ran.push(job.payload))
      .ready();
  await redis.down();
  const words = /^redis:\/\/\S+ is out of reach since \d{4}-\S+Z \(.*\); reconnecting$/;
  await expect(queue.add('lost')).rejects.toMatchObject({
    code: 'STORE_UNREACHABLE',
    message: expect.stringMatching(words),
  });
  await until('the outage is logged', () => lines.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 2_500)); // every background task has failed several times by now
  expect(lines).toEqual([expect.stringMatching(words)]);
  await redis.up();
  await until('work goes on', async () => {
    if (ran.length === 0) await queue.add('after').catch(() => {});
    return ran.length > 0;
  });
});
