import fc from 'fast-check';
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { SideBySide } from './side-by-side.js';
import { anyLimits, anyStep } from './steps.js';

/** More runs, or a run with a printed seed: CRORE_MODEL_RUNS=2000 CRORE_MODEL_SEED=42 npx vitest run test/model */
const numRuns = Number(process.env.CRORE_MODEL_RUNS ?? 200);
const seed = process.env.CRORE_MODEL_SEED === undefined ? undefined : Number(process.env.CRORE_MODEL_SEED);

describe('the stores and the model agree', () => {
  let driver: SideBySide;
  let stores: Store[];
  let queues = 0;

  beforeAll(async () => {
    const clock = () => driver.now;
    const options = { timeout: 10_000, clock };
    stores = [
      await openStore('sqlite::memory:', options),
      await openStore(`${inject('redisUrl')}?prefix=model`, options),
    ];
  });
  afterAll(async () => {
    for (const store of stores) await store.close();
  });

  it(
    'after every step of random histories',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.option(anyLimits, { nil: {} }),
          fc.constantFrom(0, 2_000),
          fc.array(anyStep, { minLength: 10, maxLength: 72, size: 'max' }),
          async (limits, watched, steps) => {
            driver = new SideBySide(`model-${++queues}`, stores);
            await driver.run({ do: 'join', worker: 0 });
            await driver.run({ do: 'limits', limits });
            if (watched > 0) await driver.run({ do: 'record', ms: watched });
            for (const one of steps) await driver.run(one);
            await driver.drain();
          },
        ),
        { numRuns, seed, endOnFailure: false },
      );
    },
    numRuns * 3_000,
  );
});
