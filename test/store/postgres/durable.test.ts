import { afterEach, describe, expect, it } from 'vitest';
import { die, finish } from '../../../dist/job/transitions.js';
import { openStore } from '../../../dist/store/open.js';
import type { Store } from '../../../dist/store/store.js';
import { newJob, settlementOf } from '../../support/jobs.js';
import { PostgresServer } from '../../support/postgres.js';

const WORKER = 'w';
const LEASE = 60_000;

/** Whoever does not wait for the log loses what is only in the memory of the server when it is killed. */
describe('what a call on PostgreSQL has answered', () => {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  /** A server that writes its log only when somebody waits for it. */
  async function start() {
    const server = await PostgresServer.start({ wal_writer_delay: '10s', wal_writer_flush_after: '1GB' });
    cleanups.push(() => server.stop());
    const store = await openStore(server.url, { timeout: 20_000 });
    cleanups.push(() => store.close());
    return { server, store };
  }

  async function crash(server: PostgresServer): Promise<void> {
    await server.kill();
    await server.up();
  }

  const take = (store: Store, queue: string, n: number) => store.claim({ queue, worker: WORKER, lease: LEASE }, n);

  it('is there after the server was killed: jobs, raw tasks, and their ends', async () => {
    const { server, store } = await start();
    await store.join('jobs', WORKER, { lease: LEASE, info: '{}' });
    await store.join('tasks', WORKER, { lease: LEASE, info: '{}' });
    await store.add('jobs', [newJob('a'), newJob('b'), newJob('c')]);
    await crash(server);
    expect(await store.count('jobs')).toMatchObject({ ready: 3 });

    await store.push('tasks', [Buffer.from('x'), Buffer.from('y')]);
    await crash(server);
    expect(await store.count('tasks')).toMatchObject({ ready: 2 });

    const [a, b] = (await take(store, 'jobs', 2)).entries;
    expect(await store.settle('jobs', [settlementOf(a!, finish(a!.job!))])).toEqual([true]);
    await crash(server);
    expect(await store.count('jobs')).toMatchObject({ done: 1, active: 1, ready: 1 });

    expect(await store.settle('jobs', [settlementOf(b!, die(b!.job!, 'no'))])).toEqual([true]);
    await crash(server);
    expect(await store.count('jobs')).toMatchObject({ done: 1, dead: 1, ready: 1 });

    const [x] = (await take(store, 'tasks', 1)).entries;
    expect(await store.settle('tasks', [settlementOf(x!, { to: 'done', attempt: 1, crashes: 0 })])).toEqual([true]);
    await crash(server);
    expect(await store.count('tasks')).toMatchObject({ ready: 1, active: 0 });
  });

  it('is there except for claims, whose jobs wait again', async () => {
    const { server, store } = await start();
    await store.join('jobs', WORKER, { lease: LEASE, info: '{}' });
    await store.add('jobs', [newJob('a')]);
    const [a] = (await take(store, 'jobs', 1)).entries;
    await crash(server);
    expect(await store.count('jobs')).toMatchObject({ ready: 1, active: 0 });
    expect(await store.settle('jobs', [settlementOf(a!, finish(a!.job!))])).toEqual([false]);
  });
});
