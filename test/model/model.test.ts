import fc from 'fast-check';
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { openStore } from '../../dist/store/open.js';
import type { Pace, Store } from '../../dist/store/store.js';
import { SideBySide, type Step } from './side-by-side.js';

const id = fc.integer({ min: 0, max: 9 });
const worker = fc.integer({ min: 0, max: 2 });
const newJob = fc.record({
  id,
  priority: fc.constantFrom(0, 0, 0, 1, 2, -1),
  delay: fc.constantFrom(0, 0, 0, 50, 120),
  key: fc.constantFrom(0, 0, 0, 1, 2, 3, 4),
  reservation: fc.constantFrom(0, 0, 300),
  needs: fc.oneof(
    { weight: 3, arbitrary: fc.constant<number[]>([]) },
    { weight: 1, arbitrary: fc.array(id, { maxLength: 3 }) },
  ),
  on: fc.boolean(),
  group: fc.constantFrom(0, 0, 0, 1, 2, 3),
  mode: fc.nat(2),
});

/** Set once, before anything happens: what a change brings back comes in no particular order. */
const rate = fc.constantFrom({ count: 2, per: 100 }, { count: 3, per: 600 }, undefined, undefined);
const concurrency = fc.constantFrom(1, 2, 4, undefined, undefined, undefined);
const part = fc.record({ concurrency, rate }).map(drop);
const pace = fc.record({ concurrency, rate, group: part }).map(drop) as fc.Arbitrary<Pace>;

function drop<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Partial<T>;
}
const how = fc.constantFrom('done', 'done', 'fail', 'die', 'release', 'snooze');

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('add' as const), jobs: fc.array(newJob, { minLength: 1, maxLength: 4 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('push' as const), tasks: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('claim' as const), worker, n: fc.integer({ min: 1, max: 4 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      picks: fc.array(fc.record({ which: fc.nat(30), how: how as fc.Arbitrary<'done'> }), {
        minLength: 1,
        maxLength: 4,
      }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('beat' as const), worker }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('join' as const), worker }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 50, 70, 300, 600, 1_001) }),
  },
  { weight: 3, arbitrary: fc.constant<Step>({ do: 'sweep' }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), id }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('report' as const), id }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('revive' as const), id }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), id }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('pause' as const), paused: fc.boolean() }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('unique' as const), task: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('take' as const), worker, n: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('finish' as const), which: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('drop' as const), task: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.constant<Step>({ do: 'clear' }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('doom' as const), worker }) },
);

/** More runs, or the run of a printed seed: CRORE_MODEL_RUNS=2000 CRORE_MODEL_SEED=42 npx vitest run test/model */
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

  it('on every step of random histories', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.option(pace, { nil: {} }),
        fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }),
        async (first, steps) => {
          driver = new SideBySide(`model-${++queues}`, stores);
          await driver.run({ do: 'join', worker: 0 });
          await driver.run({ do: 'pace', pace: first });
          for (const one of steps) await driver.run(one);
          await driver.drain();
        },
      ),
      { numRuns, seed, endOnFailure: false },
    );
  }, 600_000);
});
