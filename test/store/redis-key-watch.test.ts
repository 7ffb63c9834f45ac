import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { Engine } from '../../dist/engine/engine.js';
import { openStore } from '../../dist/store/open.js';
import { openGiven } from '../../dist/store/redis/open.js';
import type { Store } from '../../dist/store/store.js';
import { newJob } from '../support/jobs.js';
import { Line } from '../support/proxy.js';
import { RedisServer, startCluster } from '../support/redis.js';
import { until } from '../support/wait.js';

const QUEUE = 'q';
const LIST = `crore:queues:${QUEUE}`;
const SESSION = { queue: QUEUE, worker: 'w', lease: 600_000 };
const RIGHTS =
  '+@read +@write +@connection +eval +evalsha +publish +subscribe +unsubscribe +pubsub +time ~crore:* resetchannels &crore:*';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A store with a session at the queue, which asks whether something is ready in it as maintenance does. */
class Looker {
  asked = 0;

  private constructor(
    private readonly redis: RedisServer,
    readonly store: Store,
  ) {}

  static async at(redis: RedisServer, opening: Promise<Store>): Promise<Looker> {
    const store = await opening;
    cleanups.push(() => store.close());
    store.subscribe(QUEUE, () => {});
    await store.join(QUEUE, SESSION.worker, { lease: SESSION.lease, info: '' });
    return new Looker(redis, store);
  }

  look(): Promise<string[]> {
    return this.store.withReady!([QUEUE], () => {
      this.asked += 1;
    });
  }

  /** How many commands a look sends. */
  async cost(): Promise<number> {
    const before = await this.redis.calls('exists');
    await this.look();
    return (await this.redis.calls('exists')) - before;
  }

  async settled(): Promise<void> {
    await until('looks to need no call', async () => {
      await this.store.heartbeat([SESSION]);
      return (await this.cost()) === 0;
    });
  }

  /** Looks that come after several heartbeats still send something. */
  async polls(): Promise<void> {
    for (let i = 0; i < 5; i++) {
      await this.store.heartbeat([SESSION]);
      expect(await this.cost()).toBeGreaterThan(0);
    }
    await this.redis.client.lpush(LIST, 'task');
    expect(await this.look()).toEqual([QUEUE]);
    expect(this.asked).toBe(0);
  }

  async learnsOfTask(): Promise<void> {
    const { asked } = this;
    await this.redis.client.lpush(LIST, 'task');
    await until('the store to ask for a look', () => this.asked > asked);
    expect(await this.look()).toEqual([QUEUE]);
    await this.redis.client.del(LIST);
  }
}

async function start(args: string[] = []): Promise<RedisServer> {
  const redis = await RedisServer.start(args);
  cleanups.push(() => redis.stop());
  return redis;
}

async function lookerAt(redis: RedisServer, url = redis.url): Promise<Looker> {
  return Looker.at(redis, openStore(url, { timeout: 1_000 }));
}

describe('on Redis, whether a quiet queue has something ready', () => {
  it('is asked once, and again when another program has pushed a task, of which the server tells at once', async () => {
    const redis = await start();
    const looker = await lookerAt(redis);
    for (let round = 0; round < 3; round++) {
      await looker.settled();
      await looker.learnsOfTask();
    }
  });

  it('is asked again after either connection was lost', async () => {
    const redis = await start();
    const looker = await lookerAt(redis);
    for (const type of ['pubsub', 'normal']) {
      await looker.settled();
      expect(Number(await redis.client.call('CLIENT', 'KILL', 'TYPE', type))).toBeGreaterThan(0);
      await redis.client.lpush(LIST, 'task');
      await until('a look to find the task', async () => (await looker.look()).length > 0);
      await redis.client.del(LIST);
      await looker.settled();
      await looker.learnsOfTask();
    }
  });

  it('is asked again after all keys were deleted, and after messages that nobody expects', async () => {
    const redis = await start();
    const looker = await lookerAt(redis);
    await looker.settled();
    await redis.client.flushall();
    await redis.client.lpush(LIST, 'task');
    await until('a look to find the task', async () => (await looker.look()).length > 0);
    await redis.client.del(LIST);
    await looker.store.join(QUEUE, SESSION.worker, { lease: SESSION.lease, info: '' });
    await looker.settled();
    for (const message of ['', LIST, 'x'.repeat(1_000)]) await redis.client.publish('__redis__:invalidate', message);
    await looker.learnsOfTask();
  });

  it('costs nothing while jobs are handed over to a waiting worker', async () => {
    const redis = await start();
    const looker = await lookerAt(redis);
    await looker.settled();
    const { store } = looker;
    for (let i = 0; i < 20; i++) {
      await store.claim(SESSION, 1, true);
      await store.add(QUEUE, [newJob(`job ${i}`)]);
    }
    expect(looker.asked).toBe(0);
    expect(await looker.cost()).toBe(0);
  });

  it.each([
    ['the channel of the messages', RIGHTS],
    ['CLIENT TRACKING', `${RIGHTS} &__redis__:invalidate -client +client|id +client|caching`],
    ['CLIENT ID', `${RIGHTS} &__redis__:invalidate -client +client|tracking +client|caching`],
  ])('is asked every time where the account may not use %s', async (_what, rights) => {
    const redis = await start();
    await redis.client.call('ACL', 'SETUSER', 'some', 'on', '>pw', ...rights.split(' '));
    await (await lookerAt(redis, `redis://some:pw@127.0.0.1:${redis.port}`)).polls();
  });

  it('is asked every time where something between permits the messages and does not pass them on', async () => {
    const redis = await start();
    const line = await Line.to(redis.port);
    cleanups.push(() => line.close());
    line.onReply = (chunk) => !chunk.includes('message\r\n$20\r\n__redis__:invalidate');
    await (await lookerAt(redis, `redis://127.0.0.1:${line.port}`)).polls();
  });

  it('is asked every time on connections of the application', async () => {
    const redis = await start();
    const data = new Redis(redis.port);
    cleanups.push(() => data.disconnect());
    await (await Looker.at(redis, openGiven({ data }, 'crore', { timeout: 1_000 }))).polls();
  });

  it('is asked every time on a cluster', async () => {
    const cluster = await startCluster();
    cleanups.push(() => cluster.stop());
    const store = await openStore(cluster.url, { timeout: 5_000 });
    cleanups.push(() => store.close());
    store.subscribe(QUEUE, () => {});
    const total = async () => {
      const calls = await Promise.all(cluster.nodes.map((node) => node.calls('exists')));
      return calls.reduce((sum, one) => sum + one, 0);
    };
    await store.join(QUEUE, SESSION.worker, { lease: SESSION.lease, info: '' });
    for (let i = 0; i < 5; i++) {
      await store.heartbeat([SESSION]);
      const before = await total();
      expect(await store.withReady!([QUEUE], () => {})).toEqual([]);
      expect(await total()).toBeGreaterThan(before);
    }
    await store.push(QUEUE, [Buffer.from('task')]);
    expect(await store.withReady!([QUEUE], () => {})).toEqual([QUEUE]);
  });
});

it('on Redis, whether there are schedules is known without a call, until somebody stores one', async () => {
  const redis = await start();
  const looker = await lookerAt(redis);
  const { schedules } = looker.store;
  expect(schedules.areNone!()).toBe(false);
  await looker.settled();
  expect(await schedules.list()).toEqual([]);
  expect(schedules.areNone!()).toBe(true);
  const put = { name: 'mine', queue: QUEUE, definition: '{}', since: 1, next: 2 };
  await schedules.put(put);
  expect(schedules.areNone!()).toBe(false);
  await schedules.remove('mine');
  expect(await schedules.list()).toEqual([]);
  expect(schedules.areNone!()).toBe(true);
  const other = await openStore(redis.url, { timeout: 1_000 });
  cleanups.push(() => other.close());
  await other.schedules.put({ ...put, name: 'theirs' });
  await until('the message of the server', () => !schedules.areNone!());
  expect((await schedules.list()).map(({ name }) => name)).toEqual(['theirs']);
  expect(schedules.areNone!()).toBe(false);
});

it('on Redis, a worker gets what another program pushes to its quiet queue without looking by the clock', async () => {
  const redis = await start();
  const store = await openStore(redis.url, { timeout: 1_000 });
  let asked = 0;
  let isClockStopped = false;
  const withReady = async (queues: readonly string[], ask: () => void) => {
    if (isClockStopped && asked === 0) return [];
    return store.withReady!(queues, () => {
      asked += 1;
      ask();
    });
  };
  const watched = new Proxy(store, {
    get: (target, key) => {
      if (key === 'withReady') return withReady;
      const value = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const engine = new Engine(watched);
  cleanups.push(() => engine.close());
  await store.join(QUEUE, SESSION.worker, { lease: SESSION.lease, info: '' });
  await store.claim(SESSION, 1);
  let woken = 0;
  engine.maintenance.watch(QUEUE, { lease: 600_000, sweep: 20, maxCrashes: 1 }, () => {
    woken += 1;
  });
  await until('the server to remember the list of the queue', async () => {
    await store.heartbeat([SESSION]);
    const before = await redis.calls('exists');
    await withReady([QUEUE], () => {});
    return (await redis.calls('exists')) === before;
  });
  isClockStopped = true;
  await redis.client.lpush(LIST, 'task');
  await until('the worker to be woken', () => woken > 0);
});
