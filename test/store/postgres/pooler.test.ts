import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Crore, open } from '../../../dist/index.js';
import { finish } from '../../../dist/job/transitions.js';
import { openOutbox, relay } from '../../../dist/outbox/index.js';
import { openStore } from '../../../dist/store/open.js';
import { newJob, settlementOf } from '../../support/jobs.js';
import { Pooler } from '../../support/pgbouncer.js';
import { PostgresServer } from '../../support/postgres.js';
import { until } from '../../support/wait.js';

describe('behind PgBouncer in transaction mode', () => {
  let server: PostgresServer;
  let pooler: Pooler;
  let url: string;
  beforeAll(async () => {
    server = await PostgresServer.start();
    pooler = await Pooler.start(server.port, ['crore']);
    url = `postgres://crore@127.0.0.1:${pooler.port}/postgres`;
  });
  afterAll(async () => {
    await pooler.stop();
    await server.stop();
  });

  const use = async (parameters: string, work: (crore: Crore, warnings: string[]) => Promise<void>) => {
    const warnings: string[] = [];
    const crore = await open(`${url}?${parameters}`, {
      onError: (error) => {
        if (!error.message.startsWith('fsync')) warnings.push(error.message);
      },
    });
    try {
      await work(crore, warnings);
    } finally {
      await crore.close();
    }
  };
  /** Adds, works, retries and cancels, with several transactions at the same time. */
  const exercise = async (crore: Crore, name: string) => {
    const queue = crore.queue<number>(name);
    const seen: number[] = [];
    let aborted = false;
    const worker = queue.work(
      async (job) => {
        if (job.payload === 13 && job.attempt === 1) throw new Error('once more');
        if (job.payload !== 99) return void seen.push(job.payload);
        await new Promise<void>((resolve) => {
          job.signal.addEventListener('abort', () => resolve());
        });
        aborted = true;
      },
      { concurrency: 20, lease: '3s', heartbeat: '200ms' },
    );
    await worker.ready();
    await Promise.all(Array.from({ length: 60 }, (_x, i) => queue.add(i, { backoff: 10 })));
    const held = await queue.add(99);
    await until('all have run', () => seen.length === 60);
    await until('one is held', async () => (await queue.get(held.id))?.state === 'active');
    expect(await queue.cancel(held.id)).toBe(true);
    await until('its handler is told', () => aborted);
    expect(new Set(seen)).toEqual(new Set(Array.from({ length: 60 }, (_x, i) => i)));
    await worker.close();
    expect(await queue.count()).toMatchObject({ active: 0, done: 60, cancelled: 1 });
  };

  it('jobs are picked up, settled and cancelled by polling alone, and a warning says so', async () => {
    await use('schema=polled', async (crore, warnings) => {
      expect(warnings.join()).toMatch(/pooler.*listen=HOST:PORT/);
      await exercise(crore, 'q');
      expect(warnings).toHaveLength(1);
    });
    const listening = await server.client`select 1 from pg_stat_activity where query ilike 'listen%'`;
    expect(listening).toHaveLength(0);
  });

  it('an outbox is written and relayed', async () => {
    const place = `${url}?schema=pooled_outbox`;
    const outbox = await openOutbox(place);
    const sql = postgres(url, { max: 3, prepare: false });
    const crore = await open('sqlite::memory:');
    const relaying = await relay(place, crore, { batch: 2 });
    await Promise.all(
      Array.from({ length: 6 }, (_x, i) =>
        sql.begin((tx) => outbox.addManyIn(tx, 'q', [{ payload: i }, { payload: i }])),
      ),
    );
    await relaying.drained();
    const { jobs } = await crore.queue<number>('q').list('ready', { limit: 20 });
    expect(jobs.map((job) => job.payload).sort()).toEqual([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    await relaying.close();
    await Promise.all([crore.close(), outbox.close(), sql.end()]);
  });

  it('notifications arrive over a direct connection', async () => {
    await use(`schema=direct&listen=127.0.0.1:${server.port}`, async (crore, warnings) => {
      await exercise(crore, 'q');
      expect(warnings).toEqual([]);
    });
    const store = await openStore(`${url}?schema=direct&listen=${server.dir}`, { timeout: 5_000 });
    store.subscribe('q', () => {});
    await store.close();
  });

  it('the work of a worker that is gone returns, and one that lives keeps its own', async () => {
    const stores = await Promise.all([1, 2].map(() => openStore(`${url}?schema=leases`, { timeout: 5_000 })));
    const [one, two] = stores as [(typeof stores)[0], (typeof stores)[0]];
    await one.add('q', [newJob('a'), newJob('b')]);
    for (const worker of ['dead', 'live']) await one.join('q', worker, { lease: 400, info: '{}' });
    const [lost] = (await one.claim({ queue: 'q', worker: 'dead', lease: 400 }, 1)).entries;
    const [kept] = (await two.claim({ queue: 'q', worker: 'live', lease: 400 }, 1)).entries;
    const swept = await until('the dead one is noticed', async () => {
      expect(await two.heartbeat([{ queue: 'q', worker: 'live', lease: 400 }])).toEqual([true]);
      const { lost } = await two.sweep('q', { lease: 400, every: 0 });
      return lost.length > 0 ? lost : undefined;
    });
    expect(swept!.map(({ lease }) => lease.token)).toEqual([lost!.lease.token]);
    expect(await two.settle('q', [settlementOf(kept!, finish(kept!.job!))])).toEqual([true]);
    for (const store of stores) await store.close();
  });
});
