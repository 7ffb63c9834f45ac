import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import {
  type Connection,
  type Crore,
  type Handle,
  open,
  type Queue,
  type TransactionClient,
} from '../../dist/index.js';
import { startWorker } from '../support/processes.js';
import { freshPostgres, type TestStore } from '../support/stores.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const server = inject('postgresUrl');

describe('adding inside the caller’s own transaction on PostgreSQL', () => {
  let store: TestStore;
  let schema: string;
  let crore: Crore;
  let pool: pg.Pool;
  let client: pg.PoolClient;
  let name = 0;
  let queue: Queue<unknown>;

  beforeAll(async () => {
    store = await freshPostgres();
    schema = new URL(store.url).searchParams.get('schema')!;
    crore = await open(store.url, { onError: () => {} });
    pool = new pg.Pool({ connectionString: server, max: 3 });
    client = await pool.connect();
    await client.query(`create table ${schema}_orders (id int primary key)`);
  });
  afterAll(async () => {
    await client.query(`drop table ${schema}_orders`);
    client.release();
    await pool.end();
    await crore.close();
    await store.stop();
  });
  beforeEach(() => {
    queue = crore.queue(`q${++name}`);
  });
  const transaction = async <V>(work: () => Promise<V>, end = 'commit'): Promise<V> => {
    await client.query('begin');
    try {
      return await work();
    } finally {
      await client.query(end);
    }
  };
  const total = async () => Object.values(await queue.count()).reduce((sum, n) => sum + n, 0);

  it('makes the job visible exactly when the transaction commits', async () => {
    await client.query('begin');
    const plain = await queue.addIn(client, { order: 1 }, { priority: 4, delay: '1h' });
    const named = await queue.addIn(client, { order: 2 }, { id: 'two', unique: 'k' });
    expect([plain.outcome, named.outcome, named.id]).toEqual(['created', 'created', 'two']);
    expect([await plain.state(), await named.state()]).toEqual([undefined, undefined]);
    await client.query('commit');
    expect(await plain.get()).toMatchObject({ state: 'scheduled', payload: { order: 1 }, priority: 4 });
    expect(await named.get()).toMatchObject({ state: 'ready', payload: { order: 2 } });
  });

  it('leaves nothing behind when the transaction is rolled back, not even a new queue', async () => {
    await transaction(async () => {
      await queue.addIn(client, 'x');
      await queue.addIn(client, 'x', { id: 'one', unique: 'k' });
    }, 'rollback');
    expect(await crore.queues()).not.toContain(queue.name);
    expect((await transaction(() => queue.addIn(client, 'x', { id: 'one', unique: 'k' }))).outcome).toBe('created');
  });

  it('follows a savepoint of the caller', async () => {
    await transaction(async () => {
      await queue.addIn(client, 'kept');
      await client.query('savepoint mine');
      await queue.addIn(client, 'dropped');
      await client.query('rollback to mine');
    });
    expect((await queue.list('ready')).jobs.map((job) => job.payload)).toEqual(['kept']);
  });

  it('adds to several queues in the order of the calls, all or none, also when they are not awaited one by one', async () => {
    const other = crore.queue(`${queue.name}-b`);
    await transaction(async () => {
      await Promise.all([queue.addIn(client, 1), other.addIn(client, 2), queue.addIn(client, 3)]);
      const many = Array.from({ length: 1_500 }, (_x, i) => ({ payload: i }));
      expect(await other.addManyIn(client, many)).toHaveLength(1_500);
    });
    expect((await queue.list('ready')).jobs.map((job) => job.payload)).toEqual([1, 3]);
    expect((await other.list('ready', { limit: 3 })).jobs.map((job) => job.payload)).toEqual([2, 0, 1]);
    expect((await other.count()).ready).toBe(1_501);
  });

  it('returns what add returns, and leaves the transaction usable after a refusal', async () => {
    const small = crore.queue<unknown>(queue.name, { limits: { count: 2 } });
    await transaction(async () => {
      await client.query(`insert into ${schema}_orders values (${name})`);
      const adds: Handle<unknown, unknown>[] = [
        await small.addIn(client, 'a', { id: 'a' }),
        await small.addIn(client, 'b', { id: 'a' }),
        await small.addIn(client, 'c', { unique: 'k' }),
        await small.addIn(client, 'd', { unique: 'k' }),
        await small.addIn(client, 'e'),
      ];
      expect(adds.map(({ outcome }) => outcome)).toEqual(['created', 'duplicate', 'created', 'duplicate', 'full']);
      await expect(queue.addIn(client, 'x', { needs: ['nobody'] })).rejects.toMatchObject({ code: 'UNKNOWN_UPSTREAM' });
      const items = [{ payload: 1 }, { payload: 2, needs: ['nobody'] }];
      await expect(queue.addManyIn(client, items)).rejects.toMatchObject({ code: 'UNKNOWN_UPSTREAM' });
      await queue.addIn(client, 'after', { needs: ['a'] });
    });
    expect((await client.query(`select 1 from ${schema}_orders where id = ${name}`)).rows).toHaveLength(1);
    expect(await queue.count()).toMatchObject({ ready: 2, blocked: 1 });
  });

  it('does not change the settings of the transaction', async () => {
    const settings = () =>
      client.query("select name, setting from pg_settings where name ~ 'enable|timeout|plan_cache'");
    await transaction(async () => {
      const before = (await settings()).rows;
      await queue.addIn(client, 'x', { id: 'x' });
      await queue.addIn(client, 'y');
      expect((await settings()).rows).toEqual(before);
    });
  });

  it('does not lock the queue before the commit, unless an outcome has to be known', async () => {
    await transaction(async () => {
      await queue.addIn(client, 'mine');
      expect((await queue.add('theirs')).outcome).toBe('created');
    });
    expect((await queue.list('ready')).jobs.map((job) => job.payload)).toEqual(['theirs', 'mine']);
  });

  it('wakes workers, in this process and in others, by the commit', async () => {
    const answers: unknown[] = [];
    const worker = queue.work(async ({ payload }) => answers.push(payload));
    await worker.ready();
    const first = await transaction(() => queue.addIn(client, 'here'));
    await first.finished({ timeout: '4s' }); // workers look by themselves every five seconds
    await worker.close();
    expect(answers).toEqual(['here']);
    const elsewhere = await startWorker({ url: store.url, queue: queue.name, take: 0 });
    const second = await transaction(() => queue.addIn(client, 'there'));
    expect(await second.finished({ timeout: '20s' })).toBe(elsewhere.child.pid);
    await elsewhere.end('SIGKILL');
  });

  it('runs middleware and asynchronous schemas, which SQLite cannot', async () => {
    const schema = {
      '~standard': { version: 1, vendor: 'test', validate: async (value: unknown) => ({ value }) },
    } as const;
    const checked = crore.queue(queue.name, { schema });
    checked.use(async (job, next) => {
      job.options.headers.by = 'middleware';
      await next();
    });
    const [one] = await transaction(() => checked.addManyIn(client, [{ payload: 'x' }]));
    const two = await transaction(() => checked.addIn(client, 'y'));
    for (const handle of [one!, two]) expect((await handle.get())?.headers).toEqual({ by: 'middleware' });
  });

  it('is refused outside a transaction, in a failed one, and under another isolation level', async () => {
    for (const outside of [pool, client, postgres(server, { max: 1, idle_timeout: 1 })]) {
      const refused = queue.addIn(outside as TransactionClient, 'x');
      await expect(refused).rejects.toMatchObject({ code: 'BAD_OPTION', message: /not in a transaction/ });
    }
    await client.query('begin');
    await client.query('select nothing').catch(() => {});
    await expect(queue.addIn(client, 'x')).rejects.toMatchObject({ code: 'BAD_OPTION', message: /already failed/ });
    await client.query('rollback');
    await client.query('begin isolation level repeatable read');
    await expect(queue.addIn(client, 'x')).rejects.toMatchObject({ message: /repeatable read.*read committed/ });
    await client.query('commit');
    await client.query('begin read only');
    await expect(queue.addIn(client, 'x')).rejects.toMatchObject({ code: 'STORE_READONLY' });
    await client.query('commit');
    expect(await crore.queues()).not.toContain(queue.name);
  });

  it('is refused with a connection to another database, another format, and anything else', async () => {
    const database = `${schema}_other`;
    await pool.query(`create database ${database}`);
    const there = server.replace(/\/postgres$/, `/${database}`);
    const other = new pg.Client(there);
    await other.connect();
    await other.query('begin');
    const refused = () => queue.addIn(other, 'x');
    await expect(refused()).rejects.toMatchObject({ code: 'BAD_OPTION', message: expect.stringContaining(schema) });
    await (await open(`${there}?schema=${schema}`, { onError: () => {} })).close();
    await expect(refused()).rejects.toMatchObject({ code: 'BAD_OPTION', message: /another server or database/ });
    await other.end();
    await pool.query(`drop database ${database}`);
    await transaction(async () => {
      await client.query(`update ${schema}.crore_format set version = 99`);
      await expect(queue.addIn(client, 'x')).rejects.toMatchObject({ code: 'STORE_NEWER', message: /99/ });
    }, 'rollback');
    for (const nothing of [undefined, null, 5, {}, 'x'])
      await expect(queue.addIn(nothing as never, 'x')).rejects.toThrow('needs a transaction on PostgreSQL');
    await expect(queue.addIn(client, 'x', { delya: 1 } as never)).rejects.toThrow("'delya'");
    expect(await total()).toBe(0);
  });

  it('has a type for each store, and one for code that serves both', () => {
    const sqlite = (db: Connection): Handle<unknown, unknown> => queue.addIn(db, 1);
    const postgresql = (tx: pg.Client | pg.PoolClient | postgres.TransactionSql): Promise<Handle<unknown, unknown>> =>
      queue.addIn(tx, 1);
    const both = async (any: Connection | TransactionClient): Promise<Handle<unknown, unknown>> =>
      await queue.addIn(any, 1);
    expect([sqlite, postgresql, both]).toHaveLength(3);
  });

  it.each(['pg', 'postgres', 'drizzle', 'kysely', 'knex'])('examples/transactions/%s.mjs', async (library) => {
    const env = { ...process.env, CRORE_STORE: store.url, DATABASE_URL: server };
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [join(root, 'examples', 'transactions', `${library}.mjs`)],
      { env },
    );
    expect(stdout).toMatch(/^sent to ada\nno such customer\n\{[^}]*ready: 0[^}]*done: 1/);
    await crore.queue('mails').obliterate();
  });
});
