import { afterEach, describe, expect, it } from 'vitest';
import { Engine } from '../../dist/engine/engine.js';
import { openStore } from '../../dist/store/open.js';
import type { SweepOptions } from '../../dist/store/store.js';
import { newJob } from '../support/jobs.js';
import { until } from '../support/wait.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe('maintenance of a queue with several workers in one process', () => {
  it('sweeps as often as the shortest interval requires, and less often when that worker has left', async () => {
    let now = 1_000_000;
    const store = await openStore('sqlite::memory:', { timeout: 1_000, clock: () => now });
    const sweeps: SweepOptions[] = [];
    const watched = new Proxy(store, {
      get: (target, key) => {
        const value = Reflect.get(target, key, target);
        if (key === 'sweep')
          return (queue: string, options: SweepOptions) => {
            sweeps.push(options);
            return target.sweep(queue, options);
          };
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const engine = new Engine(watched);
    cleanups.push(() => engine.close());
    engine.maintenance.watch('q', { lease: 60_000, sweep: 3_600_000, maxCrashes: 1 });
    const stop = engine.maintenance.watch('q', { lease: 30_000, sweep: 20, maxCrashes: 3 });
    await until('the queue is swept', () => sweeps.length > 2);
    expect(sweeps[0]).toMatchObject({ lease: 30_000 });
    stop();
    now += 1;
    sweeps.length = 0;
    await engine.maintenance.run();
    expect(sweeps).toMatchObject([{ lease: 60_000 }]);
  });

  it('declares a job dead only after the highest number of crashes that any of them allows', async () => {
    let now = 1_000_000;
    const store = await openStore('sqlite::memory:', { timeout: 1_000, clock: () => now });
    const engine = new Engine(store);
    cleanups.push(() => engine.close());
    const policy = { lease: 1_000, sweep: 1_000 };
    engine.maintenance.watch('q', { ...policy, maxCrashes: 1 });
    engine.maintenance.watch('q', { ...policy, maxCrashes: 2 });
    await store.add('q', [newJob('a')]);
    for (const state of ['ready', 'dead']) {
      await store.join('q', `worker until ${state}`, { lease: 500, info: '' });
      await store.claim({ queue: 'q', worker: `worker until ${state}`, lease: 500 }, 1);
      now += 600;
      await engine.maintenance.run();
      expect((await store.get('q', ['a']))[0]).toMatchObject({ state });
    }
  });
});
