import { randomUUID } from 'node:crypto';
import { drizzle } from 'drizzle-orm/node-postgres';
import knex from 'knex';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { type Crore, CroreError, open } from '../../dist/index.js';
import { openOutbox, type PostgresOutbox, type Relay, type RelayOptions, relay } from '../../dist/outbox/index.js';
import { createRole } from '../support/postgres.js';
import { freshPostgres, freshSqlite } from '../support/stores.js';
import { until } from '../support/wait.js';

describe('an outbox on PostgreSQL', () => {
  const server = inject('postgresUrl');
  const schema = `outbox_${randomUUID().slice(0, 8)}`;
  const url = `${server}?schema=${schema}`;
  const pool = new pg.Pool({ connectionString: server, max: 5 });
  let outbox: PostgresOutbox;
  let crore: Crore;
  let queue: string;
  let names = 0;
  const relays: Relay[] = [];
  const errors: string[] = [];

  beforeAll(async () => {
    outbox = await openOutbox(url);
    crore = await open(`${inject('redisUrl')}?prefix=${schema}`, { onError: () => {} });
    await pool.query(`create table ${schema}_orders (id int primary key)`);
  });
  beforeEach(() => {
    queue = `q${++names}`;
  });
  afterEach(async () => {
    for (const one of relays.splice(0)) await one.close();
    errors.length = 0;
  });
  afterAll(async () => {
    await outbox.close();
    await crore.close();
    await pool.query(`drop schema ${schema} cascade; drop table ${schema}_orders`);
    await pool.end();
  });
  const onError = (error: Error) => void errors.push(`${(error as CroreError).code}: ${error.message}`);
  const start = async (target = crore, options: RelayOptions = {}) => {
    const one = await relay(url, target, { onError, ...options });
    relays.push(one);
    return one;
  };
  const begin = async () => {
    const client = await pool.connect();
    await client.query('begin');
    const end = async (how: 'commit' | 'rollback') => {
      await client.query(how);
      client.release();
    };
    return { client, end };
  };
  const transaction = async <V>(work: (client: pg.PoolClient) => Promise<V>): Promise<V> => {
    const { client, end } = await begin();
    try {
      const result = await work(client);
      await end('commit');
      return result;
    } catch (error) {
      await end('rollback');
      throw error;
    }
  };
  const waiting = async (target = crore) =>
    (await target.queue(queue).list('ready', { limit: 1_000 })).jobs.map((job) => job.payload);

  it('sends what was committed, and nothing that was rolled back', async () => {
    const one = await start();
    const failed = transaction(async (client) => {
      await client.query(`insert into ${schema}_orders values (1)`);
      await outbox.addIn(client, queue, 'never');
      throw new Error('changed my mind');
    });
    await expect(failed).rejects.toThrow('changed my mind');
    const sent = await transaction(async (client) => {
      await client.query(`insert into ${schema}_orders values (2)`);
      await outbox.addIn(client, queue, 'kept');
      await client.query('savepoint mine');
      await outbox.addIn(client, queue, 'dropped');
      await client.query('rollback to mine');
      return outbox.addIn(client, queue, { order: 2 });
    });
    await one.drained();
    expect(await waiting()).toEqual(['kept', { order: 2 }]);
    expect(await crore.queue(queue).get(sent.id)).toMatchObject({ state: 'ready' });
    expect(await outbox.count()).toBe(0);
  });

  it('loses nothing when transactions commit in another order than they have written', async () => {
    const one = await start(crore, { batch: 2 });
    const early = await begin();
    await outbox.addIn(early.client, queue, 'early 1');
    const never = await begin();
    await outbox.addIn(never.client, queue, 'never');
    for (let i = 0; i < 5; i++) await transaction((client) => outbox.addIn(client, queue, `late ${i}`));
    await until('the later ones arrive', async () => (await waiting()).length === 5);
    await outbox.addIn(early.client, queue, 'early 2');
    await early.end('commit');
    await never.end('rollback');
    await until('the earlier ones arrive', async () => (await waiting()).length === 7);
    await one.drained();
    expect(await waiting()).toEqual([...Array.from({ length: 5 }, (_x, i) => `late ${i}`), 'early 1', 'early 2']);
    expect(errors).toEqual([]);
  });

  it('sends a batch as it was begun, whatever is committed meanwhile', async () => {
    const early = await begin();
    await outbox.addIn(early.client, queue, 'early');
    await transaction((client) => outbox.addManyIn(client, queue, [{ payload: 'late 1' }, { payload: 'late 2' }]));
    const away = await open('sqlite::memory:');
    await away.close();
    const stopped = await start(away);
    await expect(stopped.drained()).rejects.toMatchObject({ code: 'CLOSED' });
    await early.end('commit');
    const one = await start();
    await one.drained();
    expect(await waiting()).toEqual(['late 1', 'late 2', 'early']);
    expect(errors).toEqual([expect.stringContaining('CLOSED')]);
  });

  it('neither makes writers wait for each other, nor for a relay, nor the relay for them', async () => {
    const open = await Promise.all([begin(), begin(), begin()]);
    for (const [i, { client }] of open.entries()) await outbox.addIn(client, queue, i);
    const one = await start();
    await one.drained();
    expect(await waiting()).toEqual([]);
    for (const { end } of open.reverse()) await end('commit');
    await one.drained();
    expect((await waiting()).sort()).toEqual([0, 1, 2]);
  });

  it('can be shared by many writers and several relays: each job once, those of a writer in order', async () => {
    await Promise.all([start(crore, { batch: 3 }), start(crore, { batch: 10 }), start(crore, { batch: 7 })]);
    const writers = ['a', 'b', 'c', 'd'].map(async (writer) => {
      for (let i = 0; i < 15; i++)
        await transaction(async (client) => {
          await outbox.addIn(client, queue, [writer, 2 * i]);
          await outbox.addIn(client, queue, [writer, 2 * i + 1]);
        });
    });
    await Promise.all(writers);
    await relays[0]!.drained();
    const arrived = (await waiting()) as [string, number][];
    expect(arrived).toHaveLength(120);
    for (const writer of ['a', 'b', 'c', 'd'])
      expect(arrived.filter(([name]) => name === writer).map(([, i]) => i)).toEqual(
        Array.from({ length: 30 }, (_x, i) => i),
      );
    expect(errors).toEqual([]);
  });

  it('is written by every library that addIn knows', async () => {
    await transaction((client) => outbox.addIn(client, queue, 'pg'));
    const sql = postgres(server, { max: 1 });
    await sql.begin((tx) => outbox.addIn(tx, queue, 'postgres'));
    await sql.end();
    await drizzle(pool).transaction((tx) => outbox.addIn(tx, queue, "drizzle's"));
    const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
    await kysely.transaction().execute((tx) =>
      outbox.addIn(
        {
          query: (text: string, values: string[]) =>
            tx.executeQuery(CompiledQuery.raw(text, values)) as Promise<{ rows: unknown[] }>,
        },
        queue,
        'kysely?',
      ),
    );
    const db = knex({ client: 'pg', connection: server });
    await db.transaction((tx) => outbox.addIn(tx, queue, 'knex'));
    await db.destroy();
    await (await start()).drained();
    expect(await waiting()).toEqual(['pg', 'postgres', "drizzle's", 'kysely?', 'knex']);
  });

  it.each([
    ['sqlite', freshSqlite],
    ['postgres', freshPostgres],
  ])('transfers all options of a job, and its bytes, to %s', async (_name, fresh) => {
    const store = await fresh();
    const bytes = Uint8Array.from({ length: 256 }, (_x, i) => i);
    const at = Date.now() + 3_600_000;
    await transaction(async (client) => {
      const headers = { trace: 'é' };
      await outbox.addIn(client, queue, bytes, { id: 'bytes', priority: 3, headers, attempts: 2 });
      await outbox.addManyIn(client, queue, [
        { payload: { text: 'a\u0000b 😀' }, id: 'later', delay: '1h' },
        { payload: 'x', id: 'twice', unique: 'k' },
        { payload: 'x', id: 'again', unique: 'k' },
        { payload: 'x', id: 'expires', expires: '1h' },
      ]);
      const many = Array.from({ length: 1_200 }, (_x, i) => ({ payload: i }));
      expect(await outbox.addManyIn(client, `${queue}-many`, many)).toHaveLength(1_200);
    });
    expect([await outbox.count(), await outbox.count(queue), await outbox.count('none')]).toEqual([1_205, 5, 0]);
    const other = await open(store.url, { onError: () => {} });
    await (await start(other)).drained();
    const target = other.queue(queue);
    const sent = await target.get('bytes');
    expect(Buffer.from(sent!.payload as Uint8Array)).toEqual(Buffer.from(bytes));
    expect(sent).toMatchObject({ priority: 3, headers: { trace: 'é' }, maxAttempts: 2 });
    const later = await target.get('later');
    expect(later).toMatchObject({ state: 'scheduled', payload: { text: 'a\u0000b 😀' } });
    expect(Math.abs(later!.runAt! - at)).toBeLessThan(60_000);
    expect([await target.get('twice'), await target.get('again')]).toEqual([expect.anything(), undefined]);
    const many = other.queue(`${queue}-many`);
    expect((await many.list('ready', { limit: 3 })).jobs.map((job) => job.payload)).toEqual([0, 1, 2]);
    expect((await many.count()).ready).toBe(1_200);
    for (const one of relays.splice(0)) await one.close();
    await other.close();
    await store.stop();
  });

  it('is written by triggers and in SQL, with the checks of the library', async () => {
    await pool.query(`create function ${schema}_mail() returns trigger language plpgsql as $$ begin
        perform ${schema}.add('${queue}', jsonb_build_object('order', new.id), '{"priority": 2}');
        return null;
      end $$`);
    await pool.query(
      `create trigger mail after insert on ${schema}_orders for each row execute function ${schema}_mail()`,
    );
    await pool.query(`insert into ${schema}_orders values (10), (11)`);
    const add = async (payload: unknown, options: unknown) =>
      (
        await pool.query(`select ${schema}.add($1, $2::text::jsonb, $3::text::jsonb) as id`, [
          queue,
          JSON.stringify(payload),
          JSON.stringify(options),
        ])
      ).rows[0].id as string;
    const id = await add('later', { delay: '1h', headers: { a: 'b' }, keep: { count: 0 } });
    await expect(add('x', { delya: 1 })).rejects.toThrow("unknown option 'delya'");
    await expect(add('x', { needs: ['a'] })).rejects.toThrow("'needs'");
    await expect(add('x'.repeat(1_100_000), {})).rejects.toThrow('the limit is 1048576');
    await (await start()).drained();
    await pool.query(`drop function ${schema}_mail cascade`);
    expect(await waiting()).toEqual([{ order: 10 }, { order: 11 }]);
    expect(await crore.queue(queue).get(id)).toMatchObject({ state: 'scheduled', headers: { a: 'b' } });
  });

  it('is sent as soon as it is committed', async () => {
    const one = await start(crore, { every: '1h' });
    await one.drained();
    await transaction((client) => outbox.addIn(client, queue, 'from elsewhere'));
    await until('the job arrives', async () => (await waiting()).length === 1);
  });

  it('is sent through a new connection when the server ends those of the relay', async () => {
    const one = await start();
    await one.drained();
    // Other test files use the same server: the schema is in every query of ours, and in the name of the channel.
    const ours = `${schema}|${Buffer.from(schema).toString('hex').slice(0, 40)}`;
    const { rowCount } = await pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'crore' and query ~ $1",
      [ours],
    );
    expect(rowCount).toBeGreaterThan(1);
    await transaction((client) => outbox.addIn(client, queue, 'after the cut'));
    await until('the job arrives', async () => (await waiting()).length === 1);
  });

  it('begins again when the database or the store was restored from a backup', async () => {
    await transaction((client) => outbox.addIn(client, queue, 'first'));
    await (await start()).drained();
    for (const one of relays.splice(0)) await one.close();
    await transaction((client) => outbox.addIn(client, queue, 'second'));
    const empty = await open('sqlite::memory:');
    await (await start(empty)).drained();
    expect(await waiting(empty)).toEqual(['second']);
    expect(errors).toEqual([expect.stringContaining('STORE_UNCERTAIN')]);
    for (const one of relays.splice(0)) await one.close();
    await empty.close();
  });

  it('is written by a role that may do nothing else', async () => {
    const role = `${schema}_writer`;
    await createRole(server, role);
    await pool.query(`grant usage on schema ${schema} to "${role}"; grant select on ${schema}.outbox_format to "${role}";
      grant insert on ${schema}.outbox_rows to "${role}"`);
    const own = server.replace('crore@', `${role}@`);
    const sql = postgres(own, { max: 1 });
    const theirs = await openOutbox(`${own}?schema=${schema}`);
    await sql.begin(async (tx) => {
      await theirs.addIn(tx, queue, 'from the library');
      await tx.unsafe(`select ${schema}.add('${queue}', '"in SQL"')`);
    });
    await expect(sql.unsafe(`select * from ${schema}.outbox_rows`)).rejects.toThrow('permission denied');
    await sql.end();
    await theirs.close();
    await pool.query(`drop owned by "${role}"; drop role "${role}"`);
    await (await start()).drained();
    expect(await waiting()).toEqual(['from the library', 'in SQL']);
  });

  it('refuses bad input by name, and writes nothing', async () => {
    const { client, end } = await begin();
    const role = `${schema}_nobody`;
    await createRole(server, role);
    const poor = server.replace('crore@', `${role}@`);
    const bad: [() => unknown, string, string][] = [
      [() => openOutbox('redis://localhost'), 'BAD_URL', 'no outbox'],
      [() => openOutbox('nothing'), 'BAD_URL', 'nothing'],
      [() => openOutbox('postgres://localhost/x?schemo=1'), 'BAD_URL', "'schemo'"],
      [() => openOutbox(`${server}?schema=information_schema`), 'STORE_CORRUPT', 'not a Crore outbox'],
      [() => open(url), 'STORE_CORRUPT', 'not a Crore store'],
      [() => openOutbox(`${poor}?schema=${schema}`), 'STORE_READONLY', schema],
      [() => openOutbox(`${poor}?schema=${schema}_new`), 'STORE_READONLY', 'CREATE'],
      [() => relay(`${poor}?schema=${schema}_new`, crore), 'STORE_READONLY', 'CREATE'],
      [() => outbox.addIn(undefined as never, queue, 'x'), 'BAD_OPTION', 'a client of pg'],
      [() => outbox.addIn(pool, queue, 'x'), 'BAD_OPTION', 'not in a transaction'],
      [() => outbox.addIn(client, '', 'x'), 'BAD_NAME', 'queue name'],
      [() => outbox.addIn(client, queue, 'x'.repeat(1_100_000)), 'PAYLOAD_TOO_LARGE', '1048576'],
      [() => outbox.addIn(client, queue, 'x', { delya: 1 } as never), 'BAD_OPTION', "'delya'"],
      [() => outbox.addIn(client, queue, 'x', { needs: ['a'] } as never), 'BAD_OPTION', "'needs'"],
      [() => outbox.addManyIn(client, queue, 'x' as never), 'BAD_OPTION', 'array'],
      [() => outbox.addManyIn(client, queue, [{ payload: 1 }, 2 as never]), 'BAD_OPTION', 'item 1'],
    ];
    for (const [call, code, word] of bad) {
      const error = await Promise.resolve()
        .then(call)
        .then(
          () => undefined,
          (reason: unknown) => reason,
        );
      expect(error, word).toBeInstanceOf(CroreError);
      expect(error, word).toMatchObject({ code, message: expect.stringContaining(word) });
    }
    await outbox.addIn(client, queue, 'after the refusals');
    await end('commit');
    expect(await outbox.count(queue)).toBe(1);
    await pool.query(`drop role "${role}"`);
  });

  it('refuses a newer format, and a client of another database', async () => {
    const { client, end } = await begin();
    await pool.query(`create database ${schema}`);
    const other = await openOutbox(`${server.replace(/postgres$/, schema)}?schema=${schema}`);
    const foreign = other.addIn(client, queue, 'x');
    await expect(foreign).rejects.toMatchObject({ code: 'BAD_OPTION', message: /another server or database/ });
    await other.close();
    await pool.query(`drop database ${schema}`);
    await client.query(`update ${schema}.outbox_format set version = 99`);
    await expect(outbox.addIn(client, queue, 'x')).rejects.toMatchObject({ code: 'STORE_NEWER' });
    await end('rollback');
    await pool.query(`update ${schema}.outbox_format set version = 99`);
    await expect(openOutbox(url)).rejects.toMatchObject({ code: 'STORE_NEWER' });
    await pool.query(`update ${schema}.outbox_format set version = 1`);
  });
});
