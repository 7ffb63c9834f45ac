import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CroreError } from '../../../dist/index.js';
import { open } from '../../../dist/index.js';
import { DEFAULT_SPEC } from '../../../dist/job/spec.js';
import { finish, release } from '../../../dist/job/transitions.js';
import { openStore } from '../../../dist/store/open.js';
import { FORMAT } from '../../../dist/store/postgres/migration.js';
import { migrateSchema } from '../../../dist/store/schema.js';
import type { Store } from '../../../dist/store/store.js';
import { Line } from '../../cli/support/crore.js';
import { names, newJob, settlementOf } from '../../support/jobs.js';
import { createRole, PostgresServer } from '../../support/postgres.js';
import { until } from '../../support/wait.js';

const timeout = 5_000;

describe('the schema of a store on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start();
    await createRole(server.url, 'app');
  });
  afterAll(() => server.stop());

  const urlOf = (schema: string, role = 'crore') =>
    `postgres://${role}@127.0.0.1:${server.port}/postgres?schema=${schema}`;
  const line = (schema: string) => new Line(urlOf(schema));
  const psql = (sql: string) => {
    const args = ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', '127.0.0.1', '-p', String(server.port), '-U', 'crore'];
    // From a file: psql may end before it has read a longer text from a pipe.
    const file = join(server.dir, 'script.sql');
    writeFileSync(file, sql);
    return execFileSync('psql', [...args, '-f', file, 'postgres'], { encoding: 'utf8', stdio: 'pipe' });
  };
  const refused = (url: string) =>
    openStore(url, { timeout }).then(
      () => expect.unreachable(`${url} was opened`),
      (error: CroreError) => error,
    );
  const relations = async (schema: string) =>
    (await server.client`select relname from pg_class where relnamespace = to_regnamespace(${schema})`).length;
  const formatOf = async (schema: string) =>
    (await server.client`select version from ${server.client(schema)}.crore_format`).map((row) => row.version);
  /** What the first format was: no table for jobs of transactions, and functions with other names. */
  const downgrade = async (schema: string) => {
    const { client } = server;
    const newer = [
      'incoming',
      'flow_memories',
      'flow_ends',
      'flow_holds',
      'flows',
      'ring_locks',
      'ring_items',
      'rings',
    ];
    const tables = newer.map((table) => `${schema}.${table}`).join();
    await client.unsafe(`drop table ${tables} cascade; drop sequence ${schema}.ring_positions`);
    await client.unsafe(`alter table ${schema}.counters drop column turns_from`);
    // Each task had its place and, when it was leased, its worker and token.
    await client.unsafe(`update ${schema}.tasks t set worker = l.worker, token = l.token from ${schema}.task_leases l
      where l.queue = t.queue and t.n between l.first and l.last and t.worker is null and t.seq is null`);
    await client.unsafe(`update ${schema}.tasks set seq = n + 1000 where seq is null or seq > 0`);
    await client.unsafe(`update ${schema}.counters set task_back = 0`);
    await client.unsafe(`drop table ${schema}.task_leases cascade; drop index ${schema}.task_returned`);
    await client.unsafe(
      `alter table ${schema}.tasks drop constraint tasks_pkey, add primary key (n), alter column seq set not null`,
    );
    await client.unsafe(`create index task_waiting on ${schema}.tasks (queue, seq) where worker is null`);
    await client.unsafe(`drop index ${schema}.group_idle`);
    await client.unsafe(`create index group_idle on ${schema}.groups (queue, opened) where waiting = 0 and holds = 0`);
    await client.unsafe(`update ${schema}.crore_format set version = 1`);
    await client.unsafe(`do $$ declare f record; begin
      for f in select oid::regprocedure as name, proname from pg_proc where pronamespace = '${schema}'::regnamespace and proname ~ '_f[0-9]+$' loop
        execute 'alter routine ' || f.name || ' rename to ' || quote_ident(regexp_replace(f.proname, '_f[0-9]+$', ''));
      end loop;
    end $$`);
  };

  it('is created by psql from what the command prints, and used by a role that may create nothing', async () => {
    const { out, code } = await line('printed').run(['schema', 'print', '--role', 'app']);
    expect(code).toBe(0);
    psql(out);
    const crore = await open(urlOf('printed', 'app'), { onError: (error) => expect.unreachable(error.message) });
    const queue = crore.queue<string>('mails');
    queue.work(async ({ payload }) => `sent to ${payload}`);
    expect(await (await queue.add('ada')).finished()).toBe('sent to ada');
    const app = postgres(urlOf('printed', 'app').replace(/\?.*/, ''), { max: 1 });
    const job = await app.begin(async (transaction) => {
      await transaction`select printed.add('mails', '"bob"')`;
      return queue.addIn(transaction, 'cleo');
    });
    expect(await job.finished()).toBe('sent to cleo');
    await until('the job of the function is done', async () => (await queue.count()).done === 3);
    await expect(app.unsafe('create table printed.mine (n int)')).rejects.toMatchObject({ code: '42501' });
    await app.end();
    await crore.close();
    expect(() => psql(out)).toThrow(/already contains/);
  });

  it('is created once by the command, and left alone then', async () => {
    const command = line('commanded');
    expect(await command.json('schema', 'migrate')).toEqual([{ outcome: 'created', from: 0, to: FORMAT }]);
    expect(await refused(urlOf('commanded', 'app'))).toMatchObject({ code: 'STORE_READONLY', message: /USAGE/ });
    expect(await command.json('schema', 'migrate', '--role', 'app')).toEqual([
      { outcome: 'unchanged', from: FORMAT, to: FORMAT },
    ]);
    const store = await openStore(urlOf('commanded', 'app'), { timeout });
    expect(await store.add('q', [newJob('a')])).toEqual([{ outcome: 'created' }]);
    await store.close();
  });

  it('is migrated from an older format, with its jobs', async () => {
    const before = await openStore(urlOf('older'), { timeout });
    await before.add('q', [newJob('a')]);
    await before.close();
    await downgrade('older');
    await server.client.unsafe('grant usage on schema older to app; grant select on older.crore_format to app');
    const poor = await refused(urlOf('older', 'app'));
    expect(poor).toMatchObject({ code: 'STORE_READONLY', message: /no CREATE privilege.*crore schema migrate/ });
    // A call that is under way ends first.
    const holder = postgres(server.url, { max: 1 });
    const migrating = await holder.begin(async (transaction) => {
      await transaction`select 1 from older.queues`;
      const [answer] = [line('older').json('schema', 'migrate')];
      await until('the migration waits', async () => {
        return (
          (await server.client`select 1 from pg_locks where not granted and mode = 'AccessExclusiveLock'`).length > 0
        );
      });
      expect(await formatOf('older')).toEqual([1]);
      return { answer };
    });
    await holder.end();
    expect(await migrating.answer).toEqual([{ outcome: 'migrated', from: 1, to: FORMAT }]);
    const after = await openStore(urlOf('older'), { timeout });
    expect((await after.get('q', ['a']))[0]).toMatchObject({ state: 'ready' });
    expect((await after.add('q', [newJob('b')]))[0]).toEqual({ outcome: 'created' });
    await after.close();
    await downgrade('older');
    psql((await line('older').run(['schema', 'print', '--from', '1'])).out);
    expect(await formatOf('older')).toEqual([FORMAT]);
  });

  it('keeps the groups and their limits when it is migrated', async () => {
    const claim = async (store: Store, queue: string) =>
      (await store.claim({ queue, worker: 'w', lease: 60_000 }, 5)).entries;
    const before = await openStore(urlOf('grouped'), { timeout });
    await before.configure('limited', { limits: { group: { concurrency: 1 } } });
    for (const queue of ['plain', 'limited']) {
      await before.add(queue, [
        newJob('a1', { spec: { group: 'a' } }),
        newJob('a2', { spec: { group: 'a' } }),
        newJob('b1', { spec: { group: 'b' } }),
      ]);
      await before.join(queue, 'w', { lease: 60_000, info: '{}' });
    }
    const running = await claim(before, 'limited');
    expect(names(running)).toEqual(['a1', 'b1']);
    await before.close();
    await downgrade('grouped');
    // The older format counted what runs in groups without limits too.
    await server.client.unsafe(`update grouped.groups set holds = 1 where name = 'a'`);
    await migrateSchema(urlOf('grouped'), { timeout });
    const after = await openStore(urlOf('grouped'), { timeout });
    expect(names(await claim(after, 'plain'))).toEqual(['a1', 'b1', 'a2']);
    expect(names(await claim(after, 'limited'))).toEqual([]);
    const [first] = running;
    await after.settle('limited', [settlementOf(first!, finish(first!.job!))]);
    expect(names(await claim(after, 'limited'))).toEqual(['a2']);
    await after.close();
  });

  it('keeps raw tasks, their order and their leases when it is migrated', async () => {
    const claim = async (store: Store, queue: string, n: number) =>
      (await store.claim({ queue, worker: 'w', lease: 60_000 }, n)).entries;
    const once = { attempt: 1, crashes: 0, spec: DEFAULT_SPEC };
    const before = await openStore(urlOf('tasked'), { timeout });
    for (const queue of ['some wait', 'all are leased', 'none']) {
      await before.push(
        queue,
        ['a', 'b', 'c', 'd', 'e'].map((task) => Buffer.from(task)),
      );
      await before.join(queue, 'w', { lease: 60_000, info: '{}' });
    }
    const [first, second, third] = await claim(before, 'some wait', 3);
    await before.settle('some wait', [settlementOf(second!, release(once))]);
    const leased = await claim(before, 'all are leased', 5);
    await before.settle(
      'none',
      (await claim(before, 'none', 5)).map((entry) => settlementOf(entry, finish(once))),
    );
    await before.close();
    await downgrade('tasked');
    await migrateSchema(urlOf('tasked'), { timeout });
    const after = await openStore(urlOf('tasked'), { timeout });
    for (const queue of ['all are leased', 'none']) await after.push(queue, [Buffer.from('f')]);
    expect(
      await after.settle('some wait', [settlementOf(first!, finish(once)), settlementOf(third!, release(once))]),
    ).toEqual([true, true]);
    expect(await after.settle('all are leased', [settlementOf(leased[1]!, release(once))])).toEqual([true]);
    expect(names(await claim(after, 'some wait', 9))).toEqual(['c', 'b', 'd', 'e']);
    expect(names(await claim(after, 'all are leased', 9))).toEqual(['b', 'f']);
    expect(names(await claim(after, 'none', 9))).toEqual(['f']);
    expect(await after.count('some wait')).toMatchObject({ ready: 0, active: 4 });
    await after.close();
  });

  it('refuses processes that are older than it from the moment of its migration, and they change nothing', async () => {
    const old = await openStore(urlOf('upgraded'), { timeout });
    await old.add('q', [newJob('a')]);
    await old.join('q', 'w', { lease: 60_000, info: '{}' });
    await server.client.unsafe(`do $$ declare f record; begin
      for f in select oid::regprocedure as name, proname from pg_proc where pronamespace = 'upgraded'::regnamespace and proname ~ '_f[0-9]+$' loop
        execute 'alter routine ' || f.name || ' rename to ' || regexp_replace(f.proname, '_f[0-9]+$', '_f99');
      end loop;
    end $$; update upgraded.crore_format set version = 99`);
    const newer = { code: 'STORE_NEWER', message: expect.stringMatching(/"upgraded".*format 99.*upgrade Crore/) };
    await expect(old.add('q', [newJob('b')])).rejects.toMatchObject(newer);
    await expect(old.claim({ queue: 'q', worker: 'w', lease: 60_000 }, 1)).rejects.toMatchObject(newer);
    await expect(old.push('q', [Buffer.from('t')])).rejects.toMatchObject(newer);
    await expect(old.sweep('q', { lease: 60_000, every: 0 })).rejects.toMatchObject(newer);
    await old.close();
    expect(await refused(urlOf('upgraded'))).toMatchObject(newer);
    const command = await line('upgraded').run(['schema', 'migrate']);
    expect([command.code, command.err]).toEqual([69, expect.stringContaining('format 99')]);
    expect(await server.client`select id from upgraded.records`).toEqual([{ id: 'a' }]);
  });

  it('is not put among the tables of another program', async () => {
    await server.client.unsafe('create schema foreign_one; create table foreign_one.things (n int)');
    await expect(migrateSchema(urlOf('foreign_one'), { timeout })).rejects.toMatchObject({ code: 'STORE_CORRUPT' });
    const { out } = await line('foreign_one').run(['schema', 'print']);
    expect(() => psql(out)).toThrow(/already contains/);
    expect(await relations('foreign_one')).toBe(1);
  });

  it.each([
    [['schema', 'print', '--store', 'sqlite:jobs.db'], /sqlite:jobs.db has no schema/],
    [['schema', 'migrate', '--store', 'redis://localhost'], /has no schema/],
    [['schema', 'print', '--from', String(FORMAT)], /a format before/],
    [['schema', 'print', '--from', 'old'], /--from/],
    [['schema', 'print', '--role', ''], /--role/],
    [['schema'], /missing command/],
  ])('crore %j is refused', async (args, why) => {
    const { code, err } = await line('nothing').run(args);
    expect(code).not.toBe(0);
    expect(err).toMatch(why);
    expect(await relations('nothing')).toBe(0);
  });
});
