import { afterEach, describe, expect, it } from 'vitest';
import { Engine } from '../../dist/engine/engine.js';
import { QueueSweeper } from '../../dist/grpc/queue-sweeper.js';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const POLICY = { lease: 600, sweep: 20, maxCrashes: 3 };
const QUEUES = Array.from({ length: 30 }, (_x, i) => `queue ${i}`);

/** The store, with a count of the calls of some of its verbs. */
function counting(store: Store, calls: Record<string, number>): Store {
  return new Proxy(store, {
    get: (target, key) => {
      const value = Reflect.get(target, key, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        const name = String(key);
        if (name in calls) calls[name]! += 1;
        return value.apply(target, args);
      };
    },
  });
}

async function sweeping(url: string): Promise<{ store: Store; calls: Record<string, number> }> {
  const store = await openStore(url, { timeout: 5_000 });
  const calls = { sweep: 0, count: 0, sweepQuiet: 0 };
  const errors: Error[] = [];
  for (const queue of QUEUES) {
    await store.join(queue, 'idle', { lease: 600_000, info: '' });
    await store.claim({ queue, worker: 'idle', lease: 600_000 }, 1);
  }
  const engine = new Engine(counting(store, calls));
  const sweeper = new QueueSweeper(engine, POLICY, (error) => errors.push(error));
  cleanups.push(
    () => engine.close(),
    () => sweeper.close(),
    () => expect(errors).toEqual([]),
  );
  return { store, calls };
}

describe.each(['redis', 'sqlite'])('a job server on %s', (kind) => {
  const start = async () => {
    if (kind === 'sqlite') return 'sqlite::memory:';
    const redis = await RedisServer.start();
    cleanups.push(() => redis.stop());
    return redis.url;
  };

  it('sweeps its quiet queues together', async () => {
    const { calls } = await sweeping(await start());
    await until('the first short sweep', () => calls.sweepQuiet! > 0);
    const before = { ...calls };
    await until('some more', () => calls.sweepQuiet! >= before.sweepQuiet! + 4);
    expect(calls.sweep! - before.sweep!).toBeLessThan(QUEUES.length);
    expect(calls.count! - before.count!).toBeLessThan(QUEUES.length);
  });

  it('finds the work of a worker that died at a queue that was quiet', async () => {
    const { store, calls } = await sweeping(await start());
    await until('the first short sweep', () => calls.sweepQuiet! > 0);
    const session = { queue: QUEUES[7]!, worker: 'dead', lease: 300 };
    await store.join(session.queue, session.worker, { lease: session.lease, info: '' });
    await store.push(session.queue, [Buffer.from('task')]);
    expect((await store.claim(session, 1)).entries).toHaveLength(1);
    await until('the task to return', async () => (await store.count(session.queue)).ready === 1);
  });
});
