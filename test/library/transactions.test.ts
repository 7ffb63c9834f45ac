import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { type Connection, type Crore, CroreError, type OpenOptions, open, type Queue } from '../../dist/index.js';
import { DatabaseSync as CroreDatabase, libraryName } from '../../dist/sqlite.js';
import { FORMAT } from '../../dist/store/sqlite/file/schema.js';
import { Program, startWorker } from '../support/processes.js';
import { type AppDatabase, openApp, transaction } from '../support/sqlite.js';
import { until } from '../support/wait.js';

describe('adding inside the caller’s own transaction', () => {
  let dir: string;
  let file: string;
  let crore: Crore;
  let db: AppDatabase;
  let queue: Queue<unknown>;

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'crore-transactions-'));
    file = join(dir, 'crore.db');
    crore = await open(`sqlite:${file}`);
    db = openApp(file);
    db.exec('CREATE TABLE orders (id INTEGER PRIMARY KEY)');
    queue = crore.queue('mails');
  });
  afterEach(async () => {
    db.close();
    await crore.close();
    rmSync(dir, { recursive: true });
  });
  const refusal = (call: () => unknown): CroreError => {
    try {
      call();
    } catch (error) {
      expect(error).toBeInstanceOf(CroreError);
      return error as CroreError;
    }
    throw new Error('it was not refused');
  };
  const orders = () => db.prepare('SELECT id FROM orders').all().length;
  const total = async () => Object.values(await queue.count()).reduce((sum, n) => sum + n, 0);

  it('makes the job visible exactly when the transaction commits', async () => {
    const handle = transaction(db, () => {
      db.exec('INSERT INTO orders VALUES (1)');
      return queue.addIn(db, { order: 1 }, { id: 'one', priority: 4, delay: '1h' });
    });
    expect(handle).toMatchObject({ id: 'one', outcome: 'created' });
    expect(await handle.get()).toMatchObject({ state: 'scheduled', payload: { order: 1 }, priority: 4 });
    expect(orders()).toBe(1);
  });

  it('leaves nothing behind when the transaction is rolled back, not even a new queue', async () => {
    expect(() =>
      transaction(db, () => {
        db.exec('INSERT INTO orders VALUES (1)');
        queue.addIn(db, 'x', { id: 'one', unique: 'k' });
        throw new Error('no');
      }),
    ).toThrow('no');
    expect([orders(), await total(), await crore.queues()]).toEqual([0, 0, []]);
    expect(queue.addIn(db, 'x', { id: 'one', unique: 'k' }).outcome).toBe('created');
  });

  it('is invisible to others before the commit', async () => {
    db.exec('BEGIN IMMEDIATE');
    const handle = queue.addIn(db, 'x');
    expect(await handle.state()).toBeUndefined();
    expect(await total()).toBe(0);
    db.exec('COMMIT');
    expect(await handle.state()).toBe('ready');
  });

  it('follows a savepoint of the caller', async () => {
    db.exec('BEGIN');
    queue.addIn(db, 'kept');
    db.exec('SAVEPOINT mine');
    queue.addIn(db, 'dropped');
    db.exec('ROLLBACK TO mine');
    db.exec('COMMIT');
    expect((await queue.list('ready')).jobs.map((job) => job.payload)).toEqual(['kept']);
  });

  it('commits by itself outside a transaction', async () => {
    expect(queue.addIn(db, 'x').outcome).toBe('created');
    expect(await total()).toBe(1);
  });

  it('adds many jobs, all or none, in order', async () => {
    const handles = transaction(db, () =>
      queue.addManyIn(
        db,
        Array.from({ length: 2_500 }, (_x, i) => ({ payload: i })),
      ),
    );
    expect(handles).toHaveLength(2_500);
    expect((await queue.list('ready', { limit: 5 })).jobs.map((job) => job.payload)).toEqual([0, 1, 2, 3, 4]);
    const error = refusal(() => queue.addManyIn(db, [{ payload: 1 }, { payload: 2, needs: ['nobody'] }]));
    expect(error.code).toBe('UNKNOWN_UPSTREAM');
    expect(refusal(() => queue.addManyIn(db, [{ payload: 1 }, { payload: 2, id: '' }])).message).toContain('item 1');
    expect(await total()).toBe(2_500);
  });

  it('leaves the transaction usable after a refusal', async () => {
    db.exec('BEGIN');
    db.exec('INSERT INTO orders VALUES (1)');
    expect(refusal(() => queue.addIn(db, 'x', { needs: ['nobody'] })).code).toBe('UNKNOWN_UPSTREAM');
    queue.addIn(db, 'y');
    db.exec('COMMIT');
    expect([orders(), await total()]).toEqual([1, 1]);
  });

  it('returns what add returns: duplicates, unique keys, limits', async () => {
    const small = crore.queue('small', { limits: { count: 2 } });
    const outcomes = transaction(db, () => [
      small.addIn(db, 'a', { id: 'a' }),
      small.addIn(db, 'b', { id: 'a' }),
      small.addIn(db, 'c', { unique: 'k' }),
      small.addIn(db, 'd', { unique: 'k' }),
      small.addIn(db, 'e'),
    ]).map((handle) => handle.outcome);
    expect(outcomes).toEqual(['created', 'duplicate', 'created', 'duplicate', 'full']);
  });

  it('wakes a worker in the same process', async () => {
    let fastest = Number.POSITIVE_INFINITY;
    const worker = queue.work(async ({ payload }) => payload);
    await worker.ready();
    for (let i = 0; i < 20; i++) {
      const addedAt = performance.now();
      const handle = transaction(db, () => queue.addIn(db, i));
      expect(await handle.finished({ timeout: '20s' })).toBe(i);
      fastest = Math.min(fastest, performance.now() - addedAt);
    }
    // Each job is added after the last one has run: with polling only, each would wait for a whole interval.
    expect(fastest).toBeLessThan(500);
  });

  it('wakes a worker in another process', async () => {
    const worker = await startWorker({ url: `sqlite:${file}`, queue: 'mails', take: 0 });
    const handle = transaction(db, () => queue.addIn(db, 'x'));
    expect(await handle.finished({ timeout: '20s' })).toBe(worker.child.pid);
    await worker.end('SIGKILL');
  });

  it('does not break the engine: an open transaction only makes it wait', async () => {
    db.exec('BEGIN IMMEDIATE');
    queue.addIn(db, 'first');
    const second = queue.add('second');
    await new Promise((resolve) => setTimeout(resolve, 60)); // long enough to hit the lock
    db.exec('COMMIT');
    expect((await second).outcome).toBe('created');
    expect((await queue.list('ready')).jobs.map((job) => job.payload)).toEqual(['first', 'second']);
  });

  it('survives kill -9: every order has its job and every job its order', async () => {
    for (let round = 0; round < 8; round++) {
      const shop = new Program('shop', { file, prefix: `r${round}-` });
      await until('some orders are written', () => shop.lines.length > 20 + 13 * round);
      await shop.end('SIGKILL');
    }
    const placed = db
      .prepare('SELECT id FROM placed ORDER BY id')
      .all()
      .map((row) => row.id as string);
    const jobs = db
      .prepare('SELECT id FROM jobs ORDER BY id')
      .all()
      .map((row) => row.id as string);
    expect(placed.length).toBeGreaterThan(100);
    expect(jobs).toEqual(placed);
    expect(await total()).toBe(placed.length);
  });

  it('works with connections that return BigInts or arrays', async () => {
    const Database = db.constructor as new (file: string, options: object) => AppDatabase;
    const odd = new Database(file, { readBigInts: true, returnArrays: true });
    transaction(odd, () => queue.addIn(odd, 'x'));
    expect(await total()).toBe(1);
    odd.close();
  });

  it('works with any object that has prepare, run, get and all', async () => {
    const bare: Connection = {
      prepare: (sql) => {
        const statement = db.prepare(sql);
        return {
          run: (...values) => statement.run(...values),
          get: (...values) => statement.get(...values),
          all: (...values) => statement.all(...values),
        };
      },
    };
    db.exec('BEGIN');
    queue.addIn(bare, 'x');
    db.exec('ROLLBACK');
    queue.addIn(bare, 'y');
    expect((await queue.list('ready')).jobs.map((job) => job.payload)).toEqual(['y']);
  });

  it('refuses a connection from another copy of SQLite, which would not see the locks', async () => {
    const require = createRequire(import.meta.url);
    const home = dirname(require.resolve('@photostructure/sqlite/package.json'));
    const copy = join(dir, 'node_modules', '@photostructure', 'sqlite');
    cpSync(home, copy, { recursive: true });
    symlinkSync(dirname(require.resolve('node-gyp-build/package.json')), join(dir, 'node_modules', 'node-gyp-build'));
    const { DatabaseSync } = createRequire(join(dir, 'app.js'))('@photostructure/sqlite');
    const stranger = new DatabaseSync(file) as AppDatabase;
    stranger.exec('BEGIN');
    expect(refusal(() => queue.addIn(stranger, 'x'))).toMatchObject({
      code: 'STORE_UNSUPPORTED',
      message: expect.stringContaining('copy of SQLite'),
    });
    stranger.exec('ROLLBACK');
    stranger.close();
    expect(await total()).toBe(0);
  });

  it('shares transactions with connections of crore/sqlite, and with a library that open() was given', async () => {
    const connection = new CroreDatabase(file);
    connection.exec('BEGIN IMMEDIATE');
    queue.addIn(connection, 'theirs');
    connection.exec('COMMIT');
    connection.close();
    const require = createRequire(import.meta.url);
    const library = require(libraryName) as OpenOptions['sqlite'];
    const own = await open(`sqlite:${file}`, { sqlite: library });
    const mine = new library!.DatabaseSync(file);
    own.queue('q2').addIn(mine, 'mine');
    mine.close();
    expect((await own.queue('q2').count()).ready).toBe(1);
    await own.close();
    const wrong = open(`sqlite:${file}`, { sqlite: {} as OpenOptions['sqlite'] });
    await expect(wrong).rejects.toMatchObject({ code: 'BAD_OPTION', message: expect.stringContaining('DatabaseSync') });
  });

  it('refuses stores that cannot share a transaction, and says what to do instead', async () => {
    const redis = await open(`${inject('redisUrl')}?prefix=transactions`, { onError: () => {} });
    expect(refusal(() => redis.queue('q').addIn(db, 'x'))).toMatchObject({
      code: 'STORE_UNSUPPORTED',
      message: expect.stringContaining('outbox'),
    });
    await redis.close();
    const memory = await open('sqlite::memory:');
    expect(refusal(() => memory.queue('q').addIn(db, 'x')).message).toContain('in memory');
    await memory.close();
    expect(refusal(() => memory.queue('q').addIn(db, 'x')).code).toBe('CLOSED');
  });

  it('refuses connections to other databases', async () => {
    const other = openApp(join(dir, 'other.db'));
    expect(refusal(() => queue.addIn(other, 'x'))).toMatchObject({
      code: 'BAD_OPTION',
      message: expect.stringContaining('other.db'),
    });
    other.close();
    const nowhere = openApp(':memory:');
    expect(refusal(() => queue.addIn(nowhere, 'x')).message).toContain('in memory');
    nowhere.close();
    for (const nothing of [undefined, null, 5, {}]) {
      expect(refusal(() => queue.addIn(nothing as never, 'x')).message).toContain('prepare(sql)');
    }
    const linked = join(dir, 'link.db');
    symlinkSync(file, linked);
    const same = openApp(linked);
    expect(queue.addIn(same, 'x').outcome).toBe('created');
    same.close();
  });

  it('refuses a file with a newer format, a temp table that shadows ours, and a read-only connection', async () => {
    db.exec(`PRAGMA user_version = ${FORMAT + 1}`);
    expect(refusal(() => queue.addIn(db, 'x')).code).toBe('STORE_NEWER');
    db.exec(`PRAGMA user_version = ${FORMAT}`);
    db.exec('CREATE TEMP TABLE jobs (x)');
    expect(refusal(() => queue.addIn(db, 'x')).message).toContain("'jobs'");
    db.exec('DROP TABLE temp.jobs');
    db.exec('PRAGMA query_only = 1');
    expect(refusal(() => queue.addIn(db, 'x')).code).toBe('STORE_READONLY');
    db.exec('PRAGMA query_only = 0');
    expect(queue.addIn(db, 'x').outcome).toBe('created');
  });

  it('reports a locked file, an asynchronous schema and bad input', async () => {
    const other = openApp(file);
    other.exec('BEGIN IMMEDIATE');
    db.exec('PRAGMA busy_timeout = 1');
    expect(refusal(() => queue.addIn(db, 'x')).code).toBe('STORE_BUSY');
    other.exec('ROLLBACK');
    other.close();
    const slow = crore.queue('slow', {
      schema: {
        '~standard': { version: 1, vendor: 'test', validate: async () => ({ issues: [{ message: 'late' }] }) },
      },
    });
    expect(refusal(() => slow.addIn(db, 'x' as never)).message).toContain('asynchronous');
    expect(refusal(() => queue.addIn(db, () => {})).code).toBe('BAD_PAYLOAD');
    expect(refusal(() => queue.addIn(db, 'x', { delya: 1 } as never)).message).toContain("'delya'");
    expect(await total()).toBe(0);
  });
});
