import fc from 'fast-check';
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { Servers } from './servers.js';
import { SideBySide } from './side-by-side.js';
import { anyLimits, anyStep } from './steps.js';

/**
 * The suite runs the same histories everywhere. Others: CRORE_MODEL_SEED=random CRORE_MODEL_RUNS=2000 npx vitest run test/model, or with a
 * printed seed.
 */
const numRuns = Number(process.env.CRORE_MODEL_RUNS ?? 100);
const wanted = process.env.CRORE_MODEL_SEED ?? '42';
const seed = wanted === 'random' ? undefined : Number(wanted);

/** A step on PostgreSQL takes several times as long. */
const STORES = [
  { names: ['sqlite', 'redis'], runs: numRuns },
  { names: ['postgres'], runs: Math.ceil(numRuns / 8) },
];

const openOne = (name: string, servers: Servers, options: { timeout: number; clock: () => number }): Promise<Store> => {
  if (name === 'sqlite') return openStore('sqlite::memory:', options);
  if (name === 'redis') return servers.open(`${inject('redisUrl')}?prefix=model`, options);
  return servers.open(`${inject('postgresUrl')}?schema=model`, options);
};

describe.each(STORES)('$names and the model agree', ({ names, runs }) => {
  let driver: SideBySide;
  let stores: Store[];
  let queues = 0;
  const servers = new Servers(inject('redisUrl'));

  beforeAll(async () => {
    const clock = () => driver.now;
    const options = { timeout: 10_000, clock };
    stores = await Promise.all(names.map((name) => openOne(name, servers, options)));
  });
  afterAll(async () => {
    for (const store of stores) await store.close();
    servers.close();
  });

  it(
    'after every step of random histories',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.option(anyLimits, { nil: {} }),
          fc.constantFrom(0, 2_000),
          fc.nat(3).map((n) => n === 0),
          fc.array(anyStep, { minLength: 10, maxLength: 72, size: 'max' }),
          async (limits, watched, cuts, steps) => {
            driver = new SideBySide(`model-${++queues}`, stores, servers);
            await driver.run({ do: 'join', worker: 0 });
            await driver.run({ do: 'limits', limits });
            // A repeated call may record its events twice: where replies are lost, no events are recorded.
            if (watched > 0 && !cuts) await driver.run({ do: 'record', ms: watched });
            for (const one of steps) {
              if (!cuts) await driver.run({ ...one, loseReply: false });
              else if (one.do !== 'record') await driver.run(one);
            }
            await driver.drain();
          },
        ),
        { numRuns: runs, seed, endOnFailure: process.env.CRORE_MODEL_SHRINK === 'off' },
      );
    },
    runs * 3_000,
  );
});
