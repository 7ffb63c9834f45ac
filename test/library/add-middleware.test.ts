import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import { type AddRequest, type Crore, CroreError, type Handle, open } from '../../dist/index.js';
import { DatabaseSync } from '../../dist/sqlite.js';
import { freshSqlite, STORES, type TestStore } from '../support/stores.js';

class QuotaError extends Error {
  override name = 'QuotaError';
}

describe.each(STORES)('middleware around add on %s', (_name, fresh) => {
  let store: TestStore;
  let crore: Crore;
  beforeAll(async () => {
    store = await fresh();
    crore = await open(store.url, { logger: false, onError: () => {} });
  });
  afterAll(async () => {
    await crore.close();
    await store.stop();
  });

  it('runs in order, changes payload, options and headers before they are checked, and sees the handle', async () => {
    const queue = crore.queue<{ text: string }, string>('changed');
    const seen: string[] = [];
    queue
      .use(async (job, next) => {
        seen.push(`first ${job.queue}`);
        job.options.headers.tenant = '7';
        const handle = await next();
        seen.push(`first again ${handle.id} ${handle.outcome}`);
      })
      .use(async (job, next) => {
        seen.push(`second ${job.options.headers.tenant}`);
        job.payload = { text: job.payload.text.trim() };
        job.options.priority ??= 3;
        return next();
      });
    const given = { id: 'a', headers: { own: 'x' } };
    const handle = await queue.add({ text: ' hi ' }, given);
    expect(await handle.get()).toMatchObject({
      payload: { text: 'hi' },
      priority: 3,
      headers: { own: 'x', tenant: '7' },
    });
    expect(seen).toEqual(['first changed', 'second 7', 'first again a created']);
    expect(given).toEqual({ id: 'a', headers: { own: 'x' } });
    await expect(queue.add({ text: 'x' }, { priority: 'high' } as never)).rejects.toThrow('priority must be');
    expect(await (await queue.add({ text: 'y' })).get()).toMatchObject({ headers: { tenant: '7' }, priority: 3 });
  });

  it('refuses a job by throwing: the caller gets that error and nothing is added', async () => {
    const queue = crore.queue<number>('refused').use((job, next) => {
      if (job.payload > 1) throw new QuotaError('too much');
      return next();
    });
    await expect(queue.add(2)).rejects.toThrow(QuotaError);
    await queue.add(1);
    expect((await queue.count()).ready).toBe(1);
  });

  it('addMany: runs for each item in turn, adds all together, and each sees its own handle', async () => {
    const queue = crore.queue<number>('many');
    const seen: string[] = [];
    queue.use(async (job, next) => {
      seen.push(`${job.payload}`);
      await new Promise((resolve) => setImmediate(resolve));
      job.payload *= 10;
      const { id } = await next();
      seen.push(id);
    });
    const handles = await queue.addMany([1, 2, 3].map((payload) => ({ payload, id: `j${payload}` })));
    expect(handles.map(({ id, outcome }) => [id, outcome])).toEqual([
      ['j1', 'created'],
      ['j2', 'created'],
      ['j3', 'created'],
    ]);
    expect(seen).toEqual(['1', '2', '3', 'j1', 'j2', 'j3']);
    expect((await queue.list('ready')).jobs.map(({ payload }) => payload)).toEqual([10, 20, 30]);
  });

  it('addMany: one refused item is named, nothing is added, and the others learn of it', async () => {
    const queue = crore.queue<number>('one of many');
    const learned: string[] = [];
    queue.use(async (job, next) => {
      if (job.payload === 2) throw new QuotaError('too much');
      try {
        return await next();
      } catch (error) {
        learned.push(`${job.payload}: ${(error as Error).message}`);
        throw error;
      }
    });
    const refused: CroreError = await queue.addMany([1, 2, 3].map((payload) => ({ payload }))).then(
      () => expect.fail('it was added'),
      (error) => error,
    );
    expect(refused).toBeInstanceOf(CroreError);
    expect([refused.code, refused.message]).toEqual(['REFUSED', 'addMany, item 1: QuotaError: too much']);
    expect(refused.cause).toBeInstanceOf(QuotaError);
    await new Promise((resolve) => setImmediate(resolve));
    expect(learned).toEqual(['1: addMany, item 1: QuotaError: too much']);
    await expect(queue.addMany([{ payload: 4 }, { payload: 5, attempts: 0 }])).rejects.toThrow(
      'addMany, item 1: attempts must be',
    );
    expect(await queue.count()).toMatchObject({ ready: 0, scheduled: 0 });
  });

  it('may answer with the handle of another job instead of adding one', async () => {
    const queue = crore.queue<string>('answered');
    const first = await queue.add('same', { id: 'first' });
    queue.use((job, next) => (job.payload === 'same' ? queue.handle('first') : next()));
    expect((await queue.add('same')).id).toBe(first.id);
    const [same, other] = await queue.addMany([{ payload: 'same' }, { payload: 'other', id: 'other' }]);
    expect([same!.id, other!.id, other!.outcome]).toEqual(['first', 'other', 'created']);
    expect((await queue.count()).ready).toBe(2);
  });

  it('a call of next() that is missing, doubled or late is named, and adds nothing twice', async () => {
    const queue = crore.queue<string>('misused');
    let late: (() => Promise<unknown>) | undefined;
    queue.use(async (job, next) => {
      if (job.payload === 'late') late = next;
      if (job.payload === 'twice') await Promise.all([next(), next()]);
      if (job.payload === 'unawaited') void next();
    });
    await expect(queue.add('late')).rejects.toThrow(
      "middleware of queue 'misused' neither called next() nor threw an error",
    );
    await expect(late!()).rejects.toThrow('called next() after it had returned');
    expect((await queue.count()).ready).toBe(0);
    await expect(queue.add('twice')).rejects.toThrow('called next() twice');
    expect((await queue.add('unawaited')).outcome).toBe('created');
    expect((await queue.list('ready')).jobs.map(({ payload }) => payload)).toEqual(['twice', 'unawaited']);
  });

  it('concerns this queue object only, and no raw tasks', async () => {
    const queue = crore.queue<string>('scope').use(() => {
      throw new QuotaError('never');
    });
    expect(await queue.push(['a', 'b'])).toBe(2);
    await crore.queue<string>('scope').add('c');
    expect((await queue.count()).ready).toBe(3);
  });

  it('bad input is named at once', async () => {
    const queue = crore.queue('wrong');
    expect(() => queue.use('x' as never)).toThrow("the middleware must be a function, not 'x'");
    queue.use((_job, next) => next());
    await expect(queue.add(1, 'x' as never)).rejects.toThrow("add must be an object, not 'x'");
    await expect(queue.add(1, { headers: 'x' } as never)).rejects.toThrow('headers');
    await expect(queue.add(1, { colour: 'x' } as never)).rejects.toThrow("unknown option 'colour'");
    queue.use((job, next) => {
      job.options = null as never;
      return next();
    });
    await expect(queue.add(1)).rejects.toThrow('add must be an object, not null');
  });

  it('types: payload and result are those of the queue', () => {
    const queue = crore.queue<{ to: string }, number>('types');
    queue.use(async (job, next) => {
      expectTypeOf(job).toEqualTypeOf<AddRequest<{ to: string }>>();
      // @ts-expect-error the payload is an object
      if (job.payload.to === 'never') job.payload = 'x';
      // @ts-expect-error the queue cannot be changed
      if (job.payload.to === 'never') job.queue = 'other';
      const handle = await next();
      expectTypeOf(handle).toEqualTypeOf<Handle<{ to: string }, number>>();
      return handle;
    });
    // @ts-expect-error a result of middleware is a handle or nothing
    queue.use(() => 'x');
  });
});

describe('middleware around add', () => {
  it('addIn and addManyIn are refused: a transaction does not wait', async () => {
    const store = await freshSqlite();
    const crore = await open(store.url);
    const queue = crore.queue<number>('in a transaction').use((_job, next) => next());
    const connection = new DatabaseSync(store.url.slice('sqlite:'.length));
    const why = "queue 'in a transaction': it has middleware, which is asynchronous";
    expect(() => queue.addIn(connection, 1)).toThrow(`addIn: ${why}`);
    expect(() => queue.addManyIn(connection, [{ payload: 1 }])).toThrow(`addManyIn: ${why}`);
    expect(crore.queue<number>('in a transaction').addIn(connection, 1).outcome).toBe('created');
    connection.close();
    await crore.close();
    await store.stop();
  });
});
