import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openRing, type Ring } from '../../dist/ring/index.js';
import { openStore } from '../../dist/store/open.js';
import { functionName } from '../../dist/store/postgres/schema.js';
import { PostgresServer } from '../support/postgres.js';
import { freePort } from '../support/redis.js';
import { until } from '../support/wait.js';
import { run } from './support/w8y.js';

describe('a ring on PostgreSQL', () => {
  let server: PostgresServer;
  let prefix = '';
  let count = 0;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  beforeEach(() => {
    prefix = `ring${count++}`;
  });
  afterAll(() => server.stop());

  async function withRing(body: (ring: Ring) => Promise<void>): Promise<void> {
    const ring = await openRing(server.url, { prefix, expiry: 2 });
    try {
      await body(ring);
    } finally {
      await ring.close();
    }
  }
  const cutConnections = () =>
    server.client`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'crore'`;

  it('accepts items from SQL', async () => {
    await withRing(async (ring) => {
      await ring.items(); // creates the schema
      const names = [`${prefix}:list`, `${prefix}:lock:`];
      const add = `select crore.add_ring_items($1, $2, array['a', 'b']::bytea[]) as length`;
      expect(await server.client.unsafe(add, names)).toMatchObject([{ length: '2' }]);
      expect(await ring.add('c')).toBe(3);
      expect((await ring.items()).map(String)).toEqual(['a', 'b', 'c']);
      expect(String(await ring.take())).toBe('a');
    });
  });

  it('keeps its locks and goes on when its connections are cut', async () => {
    await withRing(async (ring) => {
      await ring.add('a', 'b');
      const held = (await ring.take())!;
      for (let i = 0; i < 3; i++) {
        await cutConnections();
        const next = (await ring.take())!;
        expect(next.text).toBe('b');
        await next.release();
      }
      const { until: before } = await lock('a');
      await until('the lock to be refreshed', async () => (await lock('a')).until > before);
      expect(held.signal.aborted).toBe(false);
      await held.release();
      expect(await lock('a')).toMatchObject({ until: 0 });
    });
  });

  it('ends the work on an item whose lock somebody else has got, and does not release that lock', async () => {
    await withRing(async (ring) => {
      await ring.add('a');
      const held = (await ring.take())!;
      await server.client`update crore.ring_locks set token = 'another program', until = until + 600000`;
      await until('the signal to be aborted', () => held.signal.aborted);
      expect(held.signal.reason).toMatchObject({ code: 'LEASE_LOST' });
      await held.release();
      expect(await lock('a')).toMatchObject({ token: Buffer.from('another program') });
      await server.client`delete from crore.ring_locks`;
    });
  });

  it('refreshes its locks while somebody else keeps the ring locked', async () => {
    await withRing(async (ring) => {
      await ring.add('a', 'b');
      const held = (await ring.take())!;
      await server.client.begin(async (sql) => {
        await sql`select 1 from crore.rings where name = ${`${prefix}:list`} for update`;
        const waiting = ring.take();
        const { until: before } = await lock('a', sql);
        await until('the lock to be refreshed', async () => (await lock('a', sql)).until > before);
        expect(held.signal.aborted).toBe(false);
        void waiting.then((item) => item?.release()).catch(() => {});
      });
      await held.release();
    });
  });

  it('is a part of the schema of a store, and leaves nothing behind when its items are removed', async () => {
    const url = `${server.url}?schema=shared`;
    const store = await openStore(url, { timeout: 5_000 });
    const ring = await openRing(url, { prefix });
    await ring.add('a');
    await (await ring.take())!.release();
    expect(await ring.remove('a')).toBe(1);
    for (const table of ['rings', 'ring_items', 'ring_locks'])
      expect(await server.client`select 1 from shared.${server.client(table)}`).toHaveLength(0);
    await ring.close();
    await store.close();
  });

  it('does not read past all items that have moved while a transaction elsewhere keeps the server from vacuuming', async () => {
    await withRing(async (ring) => {
      await ring.add(...Array.from({ length: 10 }, (_, i) => `item${i}`));
      const other = postgres(server.url, { max: 1, onnotice: () => {} });
      const [list, take] = [`${prefix}:list`, `'${prefix}:list', 'x:', 'token', 1000, 0, 4000, 'here', 1`];
      /** Takes and releases items within the server, and returns how many buffers the next take reads. */
      const turns = async (n: number): Promise<number> => {
        await other.unsafe(`do $$ begin for i in 1 .. ${n} loop
          perform crore.${functionName('release_ring_lock')}(sha256('x:' || t.item), 'token', 0) from crore.${functionName('take_ring_item')}(${take}) t; end loop; end $$`);
        const [plan] = await other.unsafe(
          `explain (analyze, buffers, format json) select * from crore.${functionName('take_ring_item')}(${take})`,
        );
        await other`update crore.ring_locks set until = 0`;
        return plan!['QUERY PLAN'][0].Plan['Shared Hit Blocks'];
      };
      await server.client.begin('isolation level repeatable read', async (sql) => {
        await sql`select 1 from crore.rings where name = ${list}`;
        const after = await turns(3_000);
        // Nine thousand and more if a take began with all items that have moved to the right end.
        expect(after).toBeLessThan(1_000);
      });
      await other.end();
    });
  });

  it('names what is wrong: no server, no database, a bad URL', async () => {
    const port = await freePort();
    const nobody = await openRing(`postgres://crore@127.0.0.1:${port}/x`, { patience: 200 });
    await expect(nobody.take()).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: expect.stringContaining(`postgres://crore@127.0.0.1:${port}/x is out of reach`),
    });
    await nobody.close();
    const bad = [`postgres://crore@127.0.0.1:${server.port}/nowhere`, 'postgres://h/a/b'];
    const results = await Promise.all(bad.map((url) => run(['-u', url, '-k', 'w', 'true'])));
    expect(results.map(({ code }) => code)).toEqual([2, 2]);
    expect(results[0]!.err).toContain('database "nowhere" does not exist');
    expect(results[1]!.err).toContain('names more than a database');
  });

  it('fails in time while the server is down, and goes on with its items when it is back', async () => {
    const ring = await openRing(server.url, { prefix, patience: 500 });
    await ring.add('a', 'b');
    await server.down();
    await expect(ring.take()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    await server.up();
    const item = await until('an item', () => ring.take().catch(() => undefined));
    await item!.release();
    expect((await ring.items()).map(String).sort()).toEqual(['a', 'b']);
    await ring.close();
  });

  async function lock(item: string, sql: Pick<typeof server.client, 'unsafe'> = server.client) {
    const text = `select token, until::float8 from crore.ring_locks where key = sha256(convert_to($1, 'UTF8'))`;
    const [row] = await sql.unsafe(text, [`${prefix}:lock:${item}`]);
    return row as unknown as { token: Buffer; until: number };
  }
});
