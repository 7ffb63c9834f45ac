import postgres, { type Sql } from 'postgres';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type AddOptions, type Crore, open } from '../../dist/index.js';
import { decodeSpec } from '../../dist/job/spec.js';
import { freshPostgres, type TestStore } from '../support/stores.js';

describe('the SQL function add', () => {
  let store: TestStore;
  let schema: string;
  let crore: Crore;
  let sql: Sql;
  let queues = 0;

  beforeAll(async () => {
    store = await freshPostgres();
    schema = new URL(store.url).searchParams.get('schema')!;
    crore = await open(store.url, { onError: () => {} });
    sql = postgres(inject('postgresUrl'), { max: 1, onnotice: () => {} });
  });
  afterAll(async () => {
    await sql.end();
    await crore.close();
    await store.stop();
  });
  const add = async (queue: string, payload: unknown, options?: unknown): Promise<string> => {
    const given = options === undefined ? sql`` : sql`, ${JSON.stringify(options)}::text::jsonb`;
    const [row] = await sql`select ${sql(schema)}.add(${queue}, ${JSON.stringify(payload)}::text::jsonb${given}) as id`;
    return row!.id as string;
  };

  it('adds jobs in order, with ids as the library makes them, and wakes workers', async () => {
    const queue = crore.queue('plain');
    const got: unknown[] = [];
    const ids = [await add('plain', { n: 1 }), await add('plain', null), await add('plain', 'x'.repeat(100))];
    expect(ids.map((id) => id.length)).toEqual([36, 36, 36]);
    expect([...ids].sort()).toEqual(ids);
    expect(await queue.get(ids[0]!)).toMatchObject({ state: 'ready', payload: { n: 1 } });
    const worker = queue.work(async ({ payload }) => got.push(payload));
    await worker.ready();
    const last = await add('plain', 'last');
    await queue.handle(last).finished({ timeout: '4s' });
    await worker.close();
    expect(got).toEqual([{ n: 1 }, null, 'x'.repeat(100), 'last']);
  });

  const at = Date.now() + 3_600_000;
  it.each<[string, AddOptions, unknown?]>([
    ['nothing', {}],
    ['a priority and a delay', { priority: -5, delay: '90s' }],
    ['a time', { at, group: 'ada' }],
    ['a timestamp', { at: new Date(at) }, { at: new Date(at).toISOString() }],
    ['attempts and a fixed wait', { attempts: 3, backoff: '1.5s' }],
    ['a curve', { backoff: { kind: 'exponential', delay: 10, factor: 1.5, cap: '1h', jitter: 0 } }],
    ['the defaults of a curve', { backoff: { kind: 'quartic' } }],
    ['time limits', { reservation: '1m', expires: '1d', retryFor: '2h', delay: 500 }],
    ['an id', { id: 'one' }],
    ['an id with a window', { id: 'one', idWindow: '1d', keep: { for: '5m' } }],
    ['retention', { keep: { count: 0 }, keepDead: { for: '1d', count: 7 } }],
    ['a unique key', { unique: 'key' }],
    ['a unique key with everything', { unique: { key: 'key', scope: 'window', ttl: '5s', mode: 'replace' } }],
    ['headers', { headers: { trace: '1', 'x-y': 'ä' } }],
    ['upstream jobs', { id: 'two', needs: ['up', { id: 'up', on: 'finished' }] }],
  ])('means the same as the library: %s', async (_what, options, written = options) => {
    const [one, two] = [crore.queue(`library${++queues}`), crore.queue(`sql${queues}`)];
    for (const queue of [one, two]) if (options.needs) await queue.add('up', { id: 'up' });
    const expected = await one.add({ a: [1, 'ü'] }, options);
    const id = await add(two.name, { a: [1, 'ü'] }, written);
    const view = async (queue: typeof one, which: string) => {
      const { id: _id, queue: _queue, createdAt, runAt = createdAt, ...rest } = (await queue.get(which))!;
      return { rest: JSON.parse(JSON.stringify(rest).replaceAll(queue.name, 'QUEUE')), waits: runAt - createdAt };
    };
    const [a, b] = [await view(one, expected.id), await view(two, id)];
    expect(b.rest).toEqual(a.rest);
    expect(Math.abs(b.waits - a.waits)).toBeLessThan(10_000);
    expect(await stored(two.name)).toEqual(await stored(one.name));
  });

  /** What the store knows about a job, and no view shows. */
  const stored = async (queue: string) => {
    const [row] =
      await sql`select r.spec, r.traits, j.reservation, j.grp from ${sql(schema)}.records r left join ${sql(schema)}.jobs j using (n)
      join ${sql(schema)}.queues q on q.n = r.queue where q.name = ${queue} and r.id <> 'up'`;
    const spec = JSON.stringify(decodeSpec((row!.spec as string | null) ?? '')).replaceAll(queue, 'QUEUE');
    return { ...row, spec: JSON.parse(spec) };
  };

  it('returns the id of the job that is there already', async () => {
    expect(await add('same', 1, { id: 'mine' })).toBe('mine');
    expect(await add('same', 2, { id: 'mine' })).toBe('mine');
    const first = await add('same', 3, { unique: 'k' });
    expect(await add('same', 4, { unique: 'k' })).toBe(first);
    expect((await crore.queue('same').count()).ready).toBe(2);
  });

  it('is part of the transaction, also in a trigger', async () => {
    const table = sql(`${schema}_orders`);
    await sql`create table ${table} (customer text)`;
    await sql.unsafe(`create function ${schema}_mail() returns trigger language plpgsql as $$ begin
      perform ${schema}.add('orders', jsonb_build_object('to', new.customer)); return new; end $$`);
    await sql.unsafe(
      `create trigger mail after insert on ${schema}_orders for each row execute function ${schema}_mail()`,
    );
    const undone = sql.begin(async (tx) => {
      await tx`insert into ${table} values ('nobody')`;
      throw new Error('no');
    });
    await expect(undone).rejects.toThrow('no');
    await sql`insert into ${table} values ('ada'), ('bob')`;
    const { jobs } = await crore.queue('orders').list('ready');
    expect(jobs.map((job) => job.payload)).toEqual([{ to: 'ada' }, { to: 'bob' }]);
    await sql.unsafe(`drop table ${schema}_orders; drop function ${schema}_mail()`);
  });

  it.each<[unknown, string]>([
    [{ delya: 1 }, "unknown option 'delya' (known: id, idWindow, delay"],
    [{ batchPolicy: 'finished' }, "unknown option 'batchPolicy'"],
    [[], 'add must be an object'],
    [{ delay: 'soon' }, 'delay: "soon" is not a duration'],
    [{ delay: -1 }, 'delay: -1 is not a duration'],
    [{ delay: 1, at: 1 }, "give 'delay' or 'at', not both"],
    [{ at: 'someday' }, 'at must be a timestamp'],
    [{ priority: 1.5 }, 'priority must be a whole number'],
    [{ priority: '1' }, 'priority must be a whole number'],
    [{ attempts: 0 }, 'attempts must be a whole number, 1 to 1000000, not 0'],
    [{ id: '' }, 'job id must not be empty'],
    [{ id: 7 }, 'job id must be a string, not 7'],
    [{ idWindow: 1 }, "'idWindow' needs an 'id'"],
    [{ group: 'g'.repeat(513) }, 'longer than 512'],
    [{ unique: { scope: 'alive' } }, 'unique.key must be a string'],
    [{ unique: { key: 'k', scope: 'window' } }, 'needs a ttl'],
    [{ unique: { key: 'k', mode: 'twice' } }, 'unique.mode must be one of keep, extend, replace'],
    [{ backoff: { kind: 'linear' } }, 'backoff.kind must be one of'],
    [{ backoff: { kind: 'fixed' } }, 'backoff.delay'],
    [{ keep: { for: '1h', size: 3 } }, "keep: unknown option 'size'"],
    [{ headers: { a: 1 } }, "header 'a' must be a string"],
    [{ needs: ['nobody'] }, 'nobody'],
    [{ batch: { queue: 'q', id: 'none' } }, 'none'],
  ])('refuses %j', async (options, why) => {
    await expect(add('refused', 1, options)).rejects.toThrow(why);
    expect(await crore.queues()).not.toContain('refused');
  });

  it('refuses a bad queue and a payload that is too large', async () => {
    await expect(add('', 1)).rejects.toThrow('queue name must not be empty');
    await expect(add('refused', 'x'.repeat(1_048_577))).rejects.toThrow('the limit is 1048576');
  });
});
