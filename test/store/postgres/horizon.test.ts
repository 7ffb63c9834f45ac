import postgres, { type Sql } from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { finish } from '../../../dist/job/transitions.js';
import { openStore } from '../../../dist/store/open.js';
import { functionName } from '../../../dist/store/postgres/schema.js';
import type { Store } from '../../../dist/store/store.js';
import { newJob, settlementOf } from '../../support/jobs.js';
import { PostgresServer } from '../../support/postgres.js';

const LEASE = 60_000;
const CHUNK = 1_000;
const FEW = 500;
const MANY = 20_000;
const SAMPLES = 5;

const KEEP_NOTHING = { done: { ms: 0, count: 0 }, dead: { ms: 0, count: 0 } };

/** What a claim reads, in buffers: a count, which is the same on any machine. */
describe('a claim on PostgreSQL', () => {
  let server: PostgresServer;
  let store: Store;
  let claimer: Sql;
  let ids = 0;

  beforeAll(async () => {
    server = await PostgresServer.start();
    // Nothing is vacuumed or analyzed unless a test does it.
    await server.client`alter system set autovacuum = off`;
    await server.client`select pg_reload_conf()`;
    store = await openStore(server.url, { timeout: 20_000 });
    claimer = postgres(server.url, { max: 1, onnotice: () => {} });
  }, 60_000);
  afterAll(async () => {
    await store?.close();
    await claimer?.end();
    await server?.stop();
  });

  const add = async (queue: string, count: number, spec = {}) => {
    for (let left = count; left > 0; left -= CHUNK) {
      const jobs = Array.from({ length: Math.min(CHUNK, left) }, () => newJob(`job-${++ids}`, { spec }));
      await store.add(queue, jobs);
    }
  };
  const push = async (queue: string, count: number) => {
    for (let left = count; left > 0; left -= CHUNK) {
      await store.push(
        queue,
        Array.from({ length: Math.min(CHUNK, left) }, () => Buffer.from('task')),
      );
    }
  };
  /** Claims and finishes everything that waits. */
  const drain = async (queue: string) => {
    for (;;) {
      const { entries } = await store.claim({ queue, worker: 'w', lease: LEASE }, CHUNK);
      if (entries.length === 0) return;
      await store.settle(
        queue,
        entries.map((entry) =>
          settlementOf(entry, entry.job ? finish(entry.job) : { to: 'done', attempt: 1, crashes: 0 }),
        ),
      );
    }
  };
  const join = (queue: string) => store.join(queue, 'w', { lease: LEASE, info: '{}' });
  /** The least of a few claims of ten entries: the first ones of a connection also read the catalog. */
  const buffers = async (queue: string): Promise<number> => {
    const read: number[] = [];
    for (let i = 0; i < SAMPLES; i++) {
      const call = `select * from crore.${functionName('claim')}(null, '${queue}', 'w', ${LEASE}, 10, 'nonce${i}')`;
      const [row] = await claimer.unsafe(`explain (analyze, buffers, format json) ${call}`);
      const [{ Plan: plan }] = row!['QUERY PLAN'];
      expect(plan['Actual Rows']).toBe(11);
      read.push(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']);
    }
    return Math.min(...read);
  };

  it.each([
    ['jobs that are kept', (queue: string, count: number) => add(queue, count)],
    ['jobs that are forgotten', (queue: string, count: number) => add(queue, count, { keep: KEEP_NOTHING })],
    ['raw tasks', push],
  ])(
    'reads as little behind 20,000 ended %s as behind 500, although a transaction keeps them from being vacuumed',
    async (kind, fill) => {
      const queue = kind.replaceAll(' ', '-');
      await join(queue);
      const holder = postgres(server.url, { max: 1, onnotice: () => {} });
      await holder.unsafe('begin isolation level repeatable read');
      await holder.unsafe('select txid_current()');
      try {
        await fill(queue, FEW);
        await drain(queue);
        await fill(queue, 10 * SAMPLES);
        const before = await buffers(queue);
        await fill(queue, MANY);
        await drain(queue);
        await fill(queue, 10 * SAMPLES);
        expect(await buffers(queue)).toBeLessThanOrEqual(2 * before);
      } finally {
        await holder.end({ timeout: 1 });
      }
    },
    60_000,
  );

  it('reads as little from 20,000 waiting jobs as from 500, whatever the statistics say', async () => {
    await join('backlog');
    await server.client.unsafe('analyze');
    await add('backlog', FEW);
    const before = await buffers('backlog');
    await add('backlog', MANY);
    expect(await buffers('backlog')).toBeLessThanOrEqual(2 * before);
  }, 60_000);
});
