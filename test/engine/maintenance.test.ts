import { afterEach, describe, expect, it } from 'vitest';
import { Engine } from '../../dist/engine/engine.js';
import { open } from '../../dist/index.js';
import { DEFAULT_SPEC } from '../../dist/job/spec.js';
import { openStore } from '../../dist/store/open.js';
import type { Store, SweepOptions } from '../../dist/store/store.js';
import { newJob } from '../support/jobs.js';
import { RedisServer } from '../support/redis.js';
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

describe('maintenance of queues in which nothing happens', () => {
  it('rests until a signal comes, and then sweeps at the usual interval', async () => {
    const store = await openStore('sqlite::memory:', { timeout: 1_000 });
    let sweeps = 0;
    const engine = new Engine(counting(store, () => sweeps++));
    cleanups.push(() => engine.close());
    engine.maintenance.watch('q', { lease: 60_000, sweep: 10, maxCrashes: 1 });
    await store.join('q', 'w', { lease: 60_000, info: '' });
    await store.push('q', [Buffer.from('a')]);
    const { entries } = await store.claim({ queue: 'q', worker: 'w', lease: 60_000 }, 1);
    await until('a queue with a lease is swept on and on', () => sweeps > 3);
    await store.settle('q', [
      { lease: entries[0]!.lease, outcome: { to: 'done', attempt: 1, crashes: 0 }, spec: DEFAULT_SPEC, priority: 0 },
    ]);
    let before = -1;
    await until('the sweeps rest', async () => {
      if (before === sweeps) return true;
      before = sweeps;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return false;
    });
    await store.push('q', [Buffer.from('b')]);
    await until('it is swept again', () => sweeps > before + 3);
  });

  it('removes sessions that have ended, although it sweeps rarely', async () => {
    const store = await openStore('sqlite::memory:', { timeout: 1_000 });
    const engine = new Engine(store);
    cleanups.push(() => engine.close());
    engine.maintenance.watch('q', { lease: 300, sweep: 10, maxCrashes: 1 });
    await store.join('q', 'ended', { lease: 300, info: '' });
    await until('the session is gone', async () => (await store.workers('q')).length === 0);
  });

  it('looks once more when the store has asked for it during a look', async () => {
    const store = await openStore('sqlite::memory:', { timeout: 1_000 });
    let looks = 0;
    let ask = () => {};
    let finish = () => {};
    const withReady = (_queues: readonly string[], again: () => void) => {
      looks += 1;
      ask = again;
      return new Promise<string[]>((resolve) => {
        finish = () => resolve([]);
      });
    };
    const engine = new Engine(
      Object.assign(
        counting(store, () => {}),
        { withReady },
      ),
    );
    cleanups.push(() => engine.close());
    await store.join('q', 'w', { lease: 60_000, info: '' });
    engine.maintenance.watch('q', { lease: 60_000, sweep: 500, maxCrashes: 1 });
    await until('a look', () => looks === 1);
    ask();
    await new Promise(setImmediate);
    finish();
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(looks).toBe(2);
    finish();
  });

  it('looks a bounded number of times for a store that asks for it again and again', async () => {
    const store = await openStore('sqlite::memory:', { timeout: 1_000 });
    let looks = 0;
    const withReady = async (_queues: readonly string[], again: () => void) => {
      looks += 1;
      again();
      return [];
    };
    const engine = new Engine(
      Object.assign(
        counting(store, () => {}),
        { withReady },
      ),
    );
    cleanups.push(() => engine.close());
    await store.join('q', 'w', { lease: 60_000, info: '' });
    engine.maintenance.watch('q', { lease: 60_000, sweep: 500, maxCrashes: 1 });
    await until('some looks', () => looks > 5);
    for (let i = 0; i < 200; i++) await new Promise(setImmediate);
    expect(looks).toBeLessThan(40);
  });

  it('finds tasks that another program pushed, and what a worker held that took them and died', async () => {
    const redis = await RedisServer.start();
    cleanups.push(() => redis.stop());
    const crore = await open(redis.url, { onError: () => {} });
    cleanups.push(() => crore.close());
    const seen: string[] = [];
    const options = { lease: '600ms', sweep: '50ms', tasks: 'text', concurrency: 5 } as const;
    const worker = crore.queue('q').work((job) => void seen.push(String(job.payload)), options);
    await worker.ready();
    for (const round of ['first', 'second']) {
      await redis.client.lpush('crore:queues:q', round);
      await until('the task is worked', () => seen.includes(round));
    }
    // Another worker takes tasks that came without a signal, and never comes back.
    const other = await openStore(redis.url, { timeout: 5_000 });
    cleanups.push(() => other.close());
    const dead = { queue: 'q', worker: 'dead', lease: 300 };
    await other.join('q', 'dead', { lease: 300, info: '' });
    const taken: string[] = [];
    for (let i = 0; taken.length === 0; i++) {
      const pushing = redis.client.lpush('crore:queues:q', `task ${i}`);
      const claiming = other.claim(dead, 1);
      await pushing;
      for (const { task } of (await claiming).entries) taken.push(Buffer.from(task!).toString());
    }
    await until('they are worked all the same', () => taken.every((task) => seen.includes(task)));
  });
});

function counting(store: Store, swept: () => void): Store {
  return new Proxy(store, {
    get: (target, key) => {
      const value = Reflect.get(target, key, target);
      if (key !== 'sweep') return typeof value === 'function' ? value.bind(target) : value;
      return (queue: string, options: SweepOptions) => {
        swept();
        return target.sweep(queue, options);
      };
    },
  });
}
