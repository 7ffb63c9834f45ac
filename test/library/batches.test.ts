import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Crore, Fatal, open } from '../../dist/index.js';
import { ALL_STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';

describe.each(ALL_STORES)('batches on %s', (_name, fresh) => {
  let store: TestStore;
  let crore: Crore;
  beforeAll(async () => {
    store = await fresh();
    crore = await open(store.url, { logger: false });
  });
  afterAll(async () => {
    await crore.close();
    await store.stop();
  });

  const numbers = (n: number) => Array.from({ length: n }, (_x, i) => ({ payload: i }));

  it('run their job once, with the counts, when all members in all queues have ended', async () => {
    const reports = crore.queue<string, unknown>('reports');
    const [mails, texts] = [crore.queue<number>('mails'), crore.queue<number>('texts')];
    const batch = await reports.addBatch('may');
    await batch.addMany(mails, numbers(300));
    await texts.add(7, { batch });
    const workers = [mails, texts].map((queue) =>
      queue.work(async ({ payload }) => {
        if (payload === 7) throw new Fatal('not seven');
      }),
    );
    let runs = 0;
    workers.push(
      reports.work(async (job) => {
        runs += 1;
        return job.batch();
      }) as never,
    );
    await until('all members have ended', async () => (await batch.status()).pending === 0);
    expect(await batch.status()).toMatchObject({ open: true, total: 301, state: 'blocked' });
    await batch.addMany(mails, numbers(5));
    await batch.close();
    expect(await batch.finished()).toEqual({ open: false, total: 306, done: 304, dead: 2, cancelled: 0 });
    expect(runs).toBe(1);
    expect(await batch.status()).toMatchObject({ state: 'done', pending: 0 });
    await Promise.all(workers.map((worker) => worker.close()));
  });

  it('run their job at the first failure, which can cancel the rest', async () => {
    const [owners, parts] = [crore.queue<null, unknown>('first'), crore.queue<number>('first-parts')];
    const batch = await owners.addBatch(null, { when: 'failure' });
    await batch.addMany(parts, [
      { payload: 0 },
      ...numbers(50).map(({ payload }) => ({ payload: payload + 1, delay: '1h' })),
    ]);
    await batch.close();
    const workers = [
      parts.work(async () => {
        throw new Fatal('at once');
      }),
      owners.work(async (job) => {
        const before = await job.batch();
        return [before, await crore.queue('first').batch(job.id).cancelMembers()];
      }),
    ];
    expect(await batch.finished()).toEqual([{ open: false, total: 51, done: 0, dead: 1, cancelled: 0 }, 50]);
    await until('the counts are complete', async () => (await batch.status()).cancelled === 50);
    await Promise.all(workers.map((worker) => worker.close()));
  });

  it('can be closed and added to from another process, by their id', async () => {
    const other = await open(store.url, { logger: false });
    const batch = await crore.queue('shared').addBatch('x', { id: 'nightly' });
    const same = other.queue('shared').batch('nightly');
    await other.queue('shared-parts').add(1, { batch: same });
    await same.close();
    await expect(crore.queue('shared-parts').add(2, { batch })).rejects.toMatchObject({ code: 'BATCH_CLOSED' });
    expect(await batch.status()).toMatchObject({ open: false, total: 1, pending: 1 });
    expect(await batch.cancel({ by: 'ada' })).toBe(2);
    expect((await crore.queue('shared').get('nightly'))!.state).toBe('cancelled');
    await other.close();
  });

  it('that are not there, and wrong options, are named', async () => {
    const queue = crore.queue<number>('named');
    await expect(queue.batch('none').status()).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(queue.batch('none').close()).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(queue.add(1, { batch: { queue: 'named', id: 'none' } })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(queue.add(1, { batch: 'none' as never })).rejects.toMatchObject({ code: 'BAD_OPTION' });
    await expect(queue.addBatch(1, { when: 'never' as never })).rejects.toMatchObject({ code: 'BAD_OPTION' });
    expect(() => queue.batch('')).toThrow('batch id');
    expect(await queue.count()).toMatchObject({ ready: 0, blocked: 0 });
  });

  it('show in a member which batch it belongs to', async () => {
    const batch = await crore.queue('owner').addBatch(null);
    const member = await crore.queue('owned').add(1, { batch });
    expect((await member.get())!.memberOf).toEqual({ queue: 'owner', id: batch.id });
  });
});
