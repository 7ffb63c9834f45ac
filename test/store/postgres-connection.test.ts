import { afterEach, describe, expect, it } from 'vitest';
import { finish } from '../../dist/job/transitions.js';
import { openStore } from '../../dist/store/open.js';
import type { Signal, Store } from '../../dist/store/store.js';
import { newJob, settlementOf } from '../support/jobs.js';
import { PostgresServer } from '../support/postgres.js';
import { Line } from '../support/proxy.js';
import { until } from '../support/wait.js';

const LEASE = 60_000;

describe('a store on PostgreSQL', () => {
  const cleanups: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  const serve = async () => {
    const server = await PostgresServer.start();
    cleanups.push(() => server.stop());
    return server;
  };
  const use = async (server: PostgresServer, timeout = 10_000): Promise<Store> => {
    const store = await openStore(server.url, { timeout });
    cleanups.push(() => store.close());
    return store;
  };
  const collect = async (store: Store, queue: string) => {
    const signals: Signal[] = [];
    store.subscribe(queue, (signal) => signals.push(signal));
    await until('the subscription is active', () => signals.some(({ type }) => type === 'reset'));
    signals.length = 0;
    return signals;
  };
  const claimAll = async (store: Store, queue: string) => {
    await store.join(queue, 'w', { lease: LEASE, info: '{}' });
    return (await store.claim({ queue, worker: 'w', lease: LEASE }, 100)).entries;
  };

  it('goes on after the server was restarted, and tells its listeners that they may have missed something', async () => {
    const server = await serve();
    const store = await use(server);
    await store.add('q', [newJob('a')]);
    const signals = await collect(store, 'q');
    await server.down();
    const reading = store.count('q');
    await server.up();
    expect((await reading).ready).toBe(1);
    await until('listeners are told', () => signals.some(({ type }) => type === 'reset'));
    expect(await store.add('q', [newJob('b')])).toEqual([{ outcome: 'created' }]);
    expect(await claimAll(store, 'q')).toHaveLength(2);
  });

  it('reports a server that stays away within the time limit', async () => {
    const server = await serve();
    const store = await use(server, 500);
    await server.down();
    await expect(store.count('q')).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: expect.stringMatching(/out of reach since .*ECONNREFUSED.*reconnecting/),
    });
    await expect(store.push('q', [Buffer.from('t')])).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    await server.up();
    expect((await store.count('q')).ready).toBe(0);
  });

  it('does not repeat a push or a claim whose answer is lost, but repeats what is harmless', async () => {
    const server = await serve();
    const store = await use(server);
    const [entry] = await store.add('q', [newJob('a')]).then(() => claimAll(store, 'q'));
    // Every call waits for the lock of the queue, and then loses its connection.
    const { client } = server;
    const [lock] = await client`select objid, classid from pg_locks where locktype = 'advisory'
      union all select n, (regexp_match(prosrc, 'xact_lock[(](-?[0-9]+)'))[1]::bigint from crore.queues, pg_proc
      where proname like 'lock_queue_f%' and name = 'q'`;
    await client`select pg_advisory_lock(${lock!.classid}::bigint::int, ${lock!.objid}::bigint::int)`;
    const pushing = store.push('q', [Buffer.from('task')]).catch((error) => error);
    const claiming = store.claim({ queue: 'q', worker: 'w', lease: LEASE }, 1).catch((error) => error);
    const settling = store.settle('q', [settlementOf(entry!, finish(entry!.job!))]);
    const waiting = () =>
      client`select pid from pg_stat_activity where wait_event_type = 'Lock' and wait_event = 'advisory'`;
    await until('three calls wait for the lock', async () => (await waiting()).length === 3);
    await client`select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'advisory'`;
    expect(await pushing).toMatchObject({ code: 'STORE_UNCERTAIN' });
    expect(await claiming).toMatchObject({ code: 'STORE_UNCERTAIN' });
    await client`select pg_advisory_unlock_all()`;
    expect(await settling).toEqual([true]);
    expect(await store.count('q')).toMatchObject({ ready: 0, active: 0, done: 1 });
  });

  it('gives the answer of the first try to an add, a settlement and a move that were repeated', async () => {
    const server = await serve();
    const line = await Line.to(server.port);
    cleanups.push(async () => line.close());
    const store = await openStore(server.url.replace(String(server.port), String(line.port)), { timeout: 10_000 });
    cleanups.push(() => store.close());
    const interrupted = async <T>(call: () => Promise<T>, isDone: () => Promise<{ length: number }>): Promise<T> => {
      line.swallowReplies();
      const answer = call();
      await until('the server has done it', async () => (await isDone()).length > 0);
      line.mend();
      return answer;
    };
    const { client } = server;
    await store.add('q', [newJob('old')]);
    const added = await interrupted(
      () => store.add('q', [{ ...newJob('new'), fresh: true }, newJob('other')]),
      () => client`select 1 from crore.records where id = 'other'`,
    );
    expect(added).toEqual([{ outcome: 'created' }, { outcome: 'created' }]);
    const entries = await claimAll(store, 'q');
    expect(entries.map(({ job }) => job!.id)).toEqual(['old', 'new', 'other']);
    // The first call of a function on a connection takes two round trips: it must not be the one that is interrupted.
    const stale = { ...entries[2]!, lease: { ...entries[2]!.lease, token: '1.1.1.no' } };
    expect(await store.settle('q', [settlementOf(stale, finish(stale.job!))])).toEqual([false]);
    const settled = await interrupted(
      () =>
        store.settle(
          'q',
          entries.slice(0, 2).map((entry) => settlementOf(entry, finish(entry.job!))),
        ),
      () => client`select 1 from crore.jobs where state = 4`,
    );
    expect(settled).toEqual([true, true]);
    await store.add('q', [newJob('last')]);
    expect(await store.move('q', ['nothing'], 'r')).toEqual(['unknown']);
    const moved = await interrupted(
      () => store.move('q', ['last'], 'r'),
      () => client`select 1 from crore.queues q join crore.jobs j on j.queue = q.n where q.name = 'r'`,
    );
    expect(moved).toEqual(['moved']);
    expect(await store.count('q')).toMatchObject({ ready: 0, active: 1, done: 2 });
    expect(await store.count('r')).toMatchObject({ ready: 1 });
  });

  it('bounds a call that gets no answer, and sends nothing after its caller has got an error', async () => {
    const server = await serve();
    const store = await use(server, 400);
    await store.push('q', [Buffer.from('first')]);
    const pids = (await server.client`select pid from pg_stat_activity where application_name = 'crore'`).map(
      (row) => row.pid as number,
    );
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    const pushes = Array.from({ length: 8 }, (_x, i) => store.push('q', [Buffer.from(`${i}`)]).catch((error) => error));
    const read = await store.count('q').catch((error) => error);
    for (const error of await Promise.all(pushes)) {
      if (error !== true) expect(['STORE_UNCERTAIN', 'STORE_UNREACHABLE']).toContain(error.code);
    }
    for (const pid of pids) process.kill(pid, 'SIGCONT');
    const applied = (await Promise.all(pushes)).filter((answer) => answer === true).length;
    const uncertain = (await Promise.all(pushes)).filter((answer) => answer?.code === 'STORE_UNCERTAIN').length;
    if (read.code !== undefined) expect(read.code).toBe('STORE_UNREACHABLE');
    await until('the server has ended what it had received', async () => {
      const { ready } = await store.count('q').catch(() => ({ ready: -1 }));
      return ready >= 1 + applied && ready <= 1 + applied + uncertain;
    });
  });

  it('signals work, ends and cancellations to other processes', async () => {
    const server = await serve();
    const [store, other] = [await use(server), await use(server)];
    await store.join('q', 'w', { lease: LEASE, info: '{}' });
    const signals = await collect(store, 'q');
    await store.claim({ queue: 'q', worker: 'w', lease: LEASE }, 1);
    await other.add('q', [newJob('a'), newJob('b')]);
    await until('the worker hears of work', () => signals.some(({ type }) => type === 'work'));
    await store.watchForEnd('q', ['a', 'b']);
    const { entries } = await store.claim({ queue: 'q', worker: 'w', lease: LEASE }, 2);
    await other.settle('q', [settlementOf(entries[0]!, finish(entries[0]!.job!))]);
    await other.cancel('q', ['b']);
    await until('the end and the cancellation arrive', () => signals.length >= 4);
    expect(signals).toContainEqual({ type: 'finished', id: 'a' });
    expect(signals).toContainEqual({ type: 'cancelled', token: entries[1]!.lease.token });
  });

  it("neither deadlocks nor miscounts when many calls concern each other's queues at the same time", async () => {
    const server = await serve();
    const stores = await Promise.all(Array.from({ length: 4 }, () => use(server, 30_000)));
    const queues = ['a', 'b', 'c', 'd'];
    for (const queue of queues) await stores[0]!.join(queue, 'w', { lease: LEASE, info: '{}' });
    let jobs = 0;
    const run = async (store: Store, me: number) => {
      for (let i = 0; i < 25; i++) {
        const [first, second] = [queues[(me + i) % 4]!, queues[(me + 3 * i + 1) % 4]!];
        const id = `${me}-${i}`;
        await store.add(first, [newJob(id)]);
        await store.add(second, [newJob(`${id}-down`, { spec: { needs: [{ queue: first, id, on: 'finished' }] } })]);
        jobs += 2;
        const { entries } = await store.claim({ queue: first, worker: 'w', lease: LEASE }, 2);
        await Promise.all([
          store.settle(
            first,
            entries.map((entry) => settlementOf(entry, finish(entry.job!))),
          ),
          store.move(second, [`${me}-${i - 3}-down`], first),
          store.cancel(second, [`${me}-${i - 2}`]),
        ]);
      }
    };
    await Promise.all(stores.map(run));
    const counts = await Promise.all(queues.map((queue) => stores[0]!.count(queue)));
    const sums =
      await server.client`select q.name, j.state, count(*)::int as count from crore.jobs j join crore.queues q on q.n = j.queue group by 1, 2`;
    const states = ['blocked', 'scheduled', 'ready', 'active', 'done', 'dead', 'cancelled'] as const;
    for (const { name, state, count } of sums) expect(counts[queues.indexOf(name)]![states[state]!]).toBe(count);
    expect(sums.reduce((sum, row) => sum + row.count, 0)).toBe(jobs);
  });
});
