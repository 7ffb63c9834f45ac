import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { ALL_STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';

describe.each(ALL_STORES)('changing jobs on %s', (_name, fresh) => {
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

  it('gives the handler the new payload, and runs a scheduled job now', async () => {
    const queue = crore.queue<{ to: string }, string>('drafts');
    const job = await queue.add({ to: 'ada' }, { delay: '1h' });
    await queue.update(job.id, { payload: { to: 'bob' } }, { by: 'ada' });
    const worker = queue.work(async ({ payload }) => payload.to);
    await worker.ready();
    await queue.runNow(job.id, { by: 'eve' });
    expect(await job.finished()).toBe('bob');
    expect((await job.get())!.actions).toMatchObject([
      { action: 'changed', by: 'ada', detail: 'payload' },
      { action: 'changed', by: 'eve', detail: 'due now' },
    ]);
    await worker.close();
  });

  it('runs a done job again, and says who asked for it', async () => {
    const queue = crore.queue<number, number>('again');
    let runs = 0;
    const worker = queue.work(async () => ++runs);
    const job = await queue.add(1);
    expect(await job.finished()).toBe(1);
    expect(await queue.rerun(job.id, { by: 'ada' })).toBe(true);
    await until('it ran again', async () => (await job.result()) === 2);
    expect((await job.get())!.actions).toMatchObject([{ action: 'retried', by: 'ada' }]);
    expect(await queue.rerun('none')).toBe(false);
    await worker.close();
  });

  it('is refused clearly once the job has started, and for a job that is not there', async () => {
    const queue = crore.queue<number, void>('started');
    let finish = () => {};
    const worker = queue.work(() => new Promise<void>((resolve) => (finish = resolve)));
    const job = await queue.add(1);
    await until('it runs', async () => (await job.state()) === 'active');
    await expect(queue.update(job.id, { priority: 3 })).rejects.toMatchObject({ code: 'JOB_STARTED' });
    await expect(queue.runNow(job.id)).rejects.toThrow(`job '${job.id}' of queue 'started' is active`);
    await expect(queue.update('none', { priority: 3 })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await queue.rerun(job.id)).toBe(false);
    finish();
    await job.finished();
    await worker.close();
  });

  it('names what is wrong with a change before anything happens', async () => {
    const queue = crore.queue('wrong');
    const wrong: [unknown, string][] = [
      [{}, 'nothing to change'],
      [{ priority: 1.5 }, 'priority must be a whole number'],
      [{ delay: 'soon' }, 'delay'],
      [{ delay: 1, at: 2 }, "give 'delay' or 'at', not both"],
      [{ payload: 10n }, 'cannot be written as JSON'],
      [{ attempts: 3 }, "unknown option 'attempts'"],
      [null, 'update must be an object'],
    ];
    for (const [changes, message] of wrong) await expect(queue.update('x', changes as never)).rejects.toThrow(message);
    await expect(queue.update('x', { priority: 1 }, { who: 'ada' } as never)).rejects.toThrow("unknown option 'who'");
    await expect(queue.update('', { priority: 1 })).rejects.toMatchObject({ code: 'BAD_NAME' });
  });
});
