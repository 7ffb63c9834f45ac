import { afterEach, describe, expect, it } from 'vitest';
import { type Crore, CroreError, Fatal, open } from '../../dist/index.js';
import { deferred, until } from '../support/wait.js';
import { startServer, type TestServer } from './support/server.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function served(options: Parameters<typeof startServer>[0] = {}): Promise<{ server: TestServer; crore: Crore }> {
  const server = await startServer({ grace: 100, ...options });
  cleanups.push(() => server.close());
  const crore = await open(`grpc://${server.address}`, { onError: () => {}, timeout: 5_000 });
  cleanups.push(() => crore.close());
  return { server, crore };
}

describe("open('grpc://…') is the same library", () => {
  it('adds and works on jobs, awaits results, and handles failures, retries and dead jobs', async () => {
    const { crore } = await served();
    const queue = crore.queue<{ n: number }, number>('sums');
    queue.work(
      async (job) => {
        if (job.payload.n < 0) throw new Fatal('negative');
        if (job.payload.n === 7 && job.attempt < 2) throw new Error('not yet');
        await job.progress({ at: job.payload.n });
        return job.payload.n * 2;
      },
      { concurrency: 5 },
    );
    const handles = await queue.addMany([1, 2, 3].map((n) => ({ payload: { n } })));
    expect(await Promise.all(handles.map((handle) => handle.finished({ timeout: 20_000 })))).toEqual([2, 4, 6]);
    const seven = await queue.add({ n: 7 }, { backoff: 10 });
    expect(await seven.finished({ timeout: 20_000 })).toBe(14);
    expect(await seven.progress()).toEqual({ at: 7 });
    const bad = await queue.add({ n: -1 });
    await expect(bad.finished({ timeout: 20_000 })).rejects.toMatchObject({ code: 'JOB_DEAD' });
    expect(await queue.count()).toMatchObject({ done: 4, dead: 1, active: 0 });
    expect(await crore.queues()).toEqual(['sums']);
  });

  it('connects and disconnects without a warning in the server log', async () => {
    const { server, crore } = await served();
    const other = await open(`grpc://${server.address}`, { onError: () => {} });
    await other.queue('q').add(1);
    await other.close();
    for (let i = 0; i < 3; i++) await crore.queue('q').count(); // by then the server has seen the other one disconnect
    expect(server.logs.filter(({ level }) => level !== 'info')).toEqual([]);
  });

  it('notifies a running handler that its job was cancelled', async () => {
    const { server, crore } = await served();
    const queue = crore.queue('q');
    const started = deferred();
    const stopped = deferred();
    queue.work(async (job) => {
      started.resolve();
      await new Promise<void>((resolve) => job.signal.addEventListener('abort', () => resolve()));
      stopped.resolve();
    });
    const handle = await queue.add(1);
    await started.promise;
    expect((await server.store.workers('q'))[0]).toMatchObject({ holds: 1 });
    expect(await handle.cancel()).toBe(true);
    await stopped.promise;
  });

  it('runs jobs with dependencies in order', async () => {
    const { crore } = await served();
    const order: string[] = [];
    const queue = crore.queue<string>('flow');
    queue.work((job) => {
      order.push(job.payload);
    });
    await queue.addMany([
      { payload: 'first', id: 'a', delay: 50 },
      { payload: 'second', id: 'b', needs: ['a'] },
    ]);
    const last = await queue.add('third', { needs: ['a', 'b'] });
    await last.finished({ timeout: 20_000 });
    expect(order).toEqual(['first', 'second', 'third']);
    await expect(queue.add('x', { needs: ['nobody'] })).rejects.toMatchObject({ code: 'UNKNOWN_UPSTREAM' });
  });

  it('works on raw tasks and large batches', async () => {
    const { crore } = await served();
    const queue = crore.queue('raw');
    expect(await queue.push(Array.from({ length: 2_500 }, (_x, i) => `task ${i}`))).toBe(2_500);
    const seen = new Set<string>();
    queue.work((job) => void seen.add(job.payload as string), { tasks: 'text', concurrency: 50 });
    await until('all entries to be worked on', () => seen.size === 2_500);
    const big = 'x'.repeat(900_000);
    const added = await queue.addMany(Array.from({ length: 6 }, () => ({ payload: big })));
    expect(added.every(({ outcome }) => outcome === 'created')).toBe(true);
  });

  it('adds schedules that are fired by the server, whoever added them', async () => {
    const { server, crore } = await served();
    await crore.schedule('tick', '100ms', { queue: 'ticks', payload: { a: 1 } });
    await crore.close();
    await until('jobs of the schedule', async () => (await server.store.count('ticks')).ready >= 2);
    const again = await open(`grpc://${server.address}`, { onError: () => {} });
    cleanups.push(() => again.close());
    expect(await again.schedules()).toMatchObject([{ name: 'tick', queue: 'ticks', every: 100 }]);
    expect((await again.runSchedule('tick')).outcome).toBe('created');
    expect(await again.unschedule('tick')).toBe(true);
  });

  it('continues when its server is replaced', async () => {
    const first = await served({ url: 'sqlite::memory:' });
    const { port } = first.server.server.addresses[0]!;
    const done: number[] = [];
    const queue = first.crore.queue<number>('q');
    queue.work((job) => void done.push(job.payload));
    await (await queue.add(1)).finished({ timeout: 20_000 });
    await first.server.close();
    const second = await startServer({ addresses: [{ host: '127.0.0.1', port }], grace: 100 });
    cleanups.push(() => second.close());
    await (await queue.add(2)).finished({ timeout: 90_000 });
    expect(done).toEqual([1, 2]);
  }, 120_000);

  it('explains an invalid address in one line', async () => {
    await expect(open('grpc://127.0.0.1:1', { timeout: 300 })).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    await expect(open('grpc://user@host')).rejects.toMatchObject({ code: 'BAD_URL' });
    await expect(open('grpc://host?x=1')).rejects.toBeInstanceOf(CroreError);
  });
});
