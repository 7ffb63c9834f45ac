import { afterEach, describe, expect, it } from 'vitest';
import { openStore } from '../../../dist/store/open.js';
import type { Claim, Store } from '../../../dist/store/store.js';
import { names, newJob } from '../../support/jobs.js';
import { PostgresServer } from '../../support/postgres.js';
import { Line } from '../../support/proxy.js';
import { until } from '../../support/wait.js';

const LEASE = 60_000;

describe('on PostgreSQL, what is added for a worker that waits in the same process', () => {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function start(settings: Record<string, string> = {}) {
    const server = await PostgresServer.start(settings);
    cleanups.push(() => server.stop());
    const line = await Line.to(server.port);
    cleanups.push(() => line.close());
    return { server, line, store: await opened(server.url.replace(String(server.port), String(line.port))) };
  }

  async function opened(url: string): Promise<Store> {
    const store = await openStore(url, { timeout: 10_000 });
    cleanups.push(() => store.close());
    return store;
  }

  /** A worker that claims when it hears of work; what its claims have brought. */
  async function waiting(store: Store, queue: string, n: number) {
    await store.join(queue, 'w', { lease: LEASE, info: '{}' });
    await store.claim({ queue, worker: 'w', lease: LEASE }, n);
    const claims: Promise<Claim>[] = [];
    let listens = false;
    const stop = store.subscribe(queue, ({ type }) => {
      if (type === 'reset') listens = true;
      else if (claims.length === 0) claims.push(store.claim({ queue, worker: 'w', lease: LEASE }, n));
    });
    await until('it to listen', () => listens);
    cleanups.push(stop);
    return claims;
  }

  it('is claimed by the same call, before the disk is awaited, and is there after the server was killed', async () => {
    const { server, store } = await start({ wal_writer_delay: '10s', wal_writer_flush_after: '1GB' });
    const order: string[] = [];
    const add: Record<string, () => Promise<unknown>> = {
      tasks: () => store.push('tasks', [Buffer.from('a')]),
      jobs: () => store.add('jobs', [newJob('a')]),
    };
    for (const queue of ['tasks', 'jobs']) {
      const claims = await waiting(store, queue, 1);
      const accepted = add[queue]!().then(() => order.push('accepted'));
      expect(claims).toHaveLength(1);
      order.push(...names((await claims[0]!).entries));
      await accepted;
    }
    expect(order).toEqual(['a', 'accepted', 'a', 'accepted']);
    await server.kill();
    await server.up();
    for (const queue of ['tasks', 'jobs']) expect(await store.count(queue)).toMatchObject({ ready: 0, active: 1 });
  });

  it('is offered to workers of other processes as far as the claim leaves it', async () => {
    const { server, store } = await start();
    const claims = await waiting(store, 'q', 1);
    const others = await waiting(await opened(server.url), 'q', 5);
    await store.push('q', [Buffer.from('a')]);
    expect(names((await claims.pop()!).entries)).toEqual(['a']);
    await store.push(
      'q',
      ['b', 'c', 'd'].map((task) => Buffer.from(task)),
    );
    // Not taken off: the signal for the others arrives here, too, and must not lead to a second claim.
    expect(names((await claims[0]!).entries)).toEqual(['b']);
    await until('the other one to claim', () => others.length > 0);
    expect(names((await others[0]!).entries)).toEqual(['c', 'd']);
  });

  it('waits while the queue is paused or full', async () => {
    const { store } = await start();
    const claims = await waiting(store, 'q', 5);
    await store.configure('q', { paused: true });
    await store.add('q', [newJob('a')]);
    expect(await claims.pop()!).toMatchObject({ status: 'paused', entries: [] });
    expect(await store.push('q', [Buffer.from('b')], { count: 1 })).toBe(false);
    expect((await store.add('q', [newJob('b')], { count: 1 }))[0]).toEqual({ outcome: 'full' });
    expect(await store.add('q', [newJob('a')])).toEqual([{ outcome: 'duplicate', id: 'a' }]);
    expect(await store.count('q')).toMatchObject({ ready: 1, active: 0 });
  });

  it('is uncertain, or added once, if the connection is lost before the disk was awaited', async () => {
    const { line, store } = await start();
    const cutAfter = (text: string) => {
      line.onReply = (chunk) => {
        if (!chunk.includes(text)) return true;
        line.onReply = () => false;
        return true;
      };
    };
    const lost = async <T>(claims: Promise<Claim>[], adding: Promise<T>) => {
      const { entries } = await claims[0]!;
      line.mend();
      line.cut();
      return { taken: names(entries), answer: await adding.catch((error: { code: string }) => error.code) };
    };
    const tasks = await waiting(store, 'tasks', 1);
    await store.push('other', [Buffer.from('warm')]);
    cutAfter(Buffer.from('first task').toString('hex'));
    expect(await lost(tasks, store.push('tasks', [Buffer.from('first task')]))).toEqual({
      taken: ['first task'],
      answer: 'STORE_UNCERTAIN',
    });
    const jobs = await waiting(store, 'jobs', 1);
    cutAfter('first job');
    expect(await lost(jobs, store.add('jobs', [newJob('first job')]))).toEqual({
      taken: ['first job'],
      answer: [{ outcome: 'created' }],
    });
    expect(await store.count('jobs')).toMatchObject({ ready: 0, active: 1 });
  });
});
