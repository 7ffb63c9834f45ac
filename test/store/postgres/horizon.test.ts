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

/** In buffers: a count that does not depend on the speed of the machine. */
describe('what calls on PostgreSQL read', () => {
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
  const emptyTables = async () => {
    const tables =
      await claimer`select relname from pg_class where relnamespace = 'crore'::regnamespace and relkind = 'r'`;
    const names = tables.map(({ relname }) => `crore.${relname}`).filter((name) => name !== 'crore.crore_format');
    await server.client.unsafe(`truncate ${names}`);
  };
  const join = (queue: string) => store.join(queue, 'w', { lease: LEASE, info: '{}' });
  const read = async (call: string): Promise<number> => {
    const [row] = await claimer.unsafe(`explain (analyze, buffers, format json) select * from ${call}`);
    const [{ Plan: plan }] = row!['QUERY PLAN'];
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
  };
  const call = (name: string, args: string) => `crore.${functionName(name)}(${args})`;
  const claimOf = (queue: string) => call('claim', `null, '${queue}', 'w', ${LEASE}, 10, 'nonce${++ids}'`);
  /** The least of a few calls: the first ones of a connection also read the catalog. */
  const least = async (sample: () => Promise<number>): Promise<number> => {
    const all: number[] = [];
    for (let i = 0; i < SAMPLES; i++) all.push(await sample());
    return Math.min(...all);
  };
  const buffers = (queue: string) => least(() => read(claimOf(queue)));
  /** Adds ten jobs with ids of their own. */
  const addBuffers = (queue: string) =>
    least(() => {
      const own = Array.from({ length: 10 }, () => `own-${++ids}`);
      return read(call('add_plain', `null, '${queue}', '{${own}}', '{${own}}', null, null, true, null, null`));
    });
  /** Claims ten jobs, and finishes them. */
  const doneBuffers = (queue: string) =>
    least(async () => {
      const [head, ...jobs] = await claimer.unsafe(`select * from ${claimOf(queue)}`);
      const list = (key: string) => `'{${jobs.map((job) => job[key])}}'`;
      const tokens = `'{${jobs.map(() => head!.token)}}'`;
      const nulls = `'{${jobs.map(() => 'null')}}'`;
      const args = `null, false, '${queue}', ${list('n')}, ${tokens}, ${list('attempt')}, ${list('id')}, ${nulls}, null, true`;
      return read(call('done', args));
    });

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

  it('reads as little behind 20,000 ended jobs as behind 500 after the tables were analyzed in that state, also for jobs with rows', async () => {
    const queue = 'analyzed';
    await emptyTables();
    await join(queue);
    const prioritised = async () => {
      const jobs = Array.from({ length: 10 * SAMPLES }, () => newJob(`job-${++ids}`, { priority: 1 }));
      await store.add(queue, jobs);
    };
    const measure = async () => {
      await prioritised();
      const claim = await buffers(queue);
      await prioritised();
      const done = await doneBuffers(queue);
      const cancel = await least(async () => {
        await store.add(queue, [newJob(`job-${++ids}`)]);
        return read(call('cancel', `null, false, '${queue}', '{job-${ids}}', null`));
      });
      return { claim, done, cancel };
    };
    const holder = postgres(server.url, { max: 1, onnotice: () => {} });
    await holder.unsafe('begin isolation level repeatable read');
    await holder.unsafe('select txid_current()');
    try {
      await add(queue, FEW, { keep: KEEP_NOTHING });
      await drain(queue);
      const before = await measure();
      // So that the tables have next to no rows that are not dead.
      await store.obliterate(queue);
      await join(queue);
      await add(queue, MANY, { keep: KEEP_NOTHING });
      await drain(queue);
      await server.client.unsafe('analyze');
      const after = await measure();
      for (const name of ['claim', 'done', 'cancel'] as const)
        expect(after[name]).toBeLessThanOrEqual(2 * before[name]);
    } finally {
      await holder.end({ timeout: 1 });
    }
  }, 60_000);

  it.each([
    ['a claim', buffers],
    ['adding jobs with ids of their own', addBuffers],
    ['finishing jobs', doneBuffers],
  ])(
    '%s reads as little with 20,000 waiting jobs as with 500, although all plans were made for empty tables',
    async (what, measure) => {
      const queue = what.replaceAll(' ', '-');
      await emptyTables();
      await server.client.unsafe('analyze');
      await join(queue);
      await add(queue, 10 * SAMPLES);
      await measure(queue);
      await add(queue, FEW);
      const before = await measure(queue);
      await add(queue, MANY);
      expect(await measure(queue)).toBeLessThanOrEqual(2 * before);
    },
    60_000,
  );
});
