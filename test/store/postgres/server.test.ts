import { afterEach, describe, expect, it } from 'vitest';
import { open } from '../../../dist/index.js';
import { ServeProcess } from '../../grpc/support/process.js';
import { freshPostgres } from '../../support/stores.js';

describe('a job server on PostgreSQL', () => {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  it('accepts the reports of workers: results, failures and progress', async () => {
    const { url, stop } = await freshPostgres();
    cleanups.push(stop);
    const args = ['--addr', '127.0.0.1:0', '--http', 'off', '--store', url, '--log-level', 'error'];
    const server = await ServeProcess.start(args);
    cleanups.push(() => server.end());
    const crore = await open(`grpc://${server.address}`, { onError: () => {}, logger: false });
    cleanups.push(() => crore.close());
    const queue = crore.queue<number>('q');
    queue.work(async (job) => {
      await job.progress(job.payload);
      if (job.payload === 1 && job.attempt === 1) throw new Error('once more');
      return job.payload * 2;
    });
    const handles = await Promise.all([1, 2, 3].map((payload) => queue.add(payload, { backoff: 10 })));
    expect(await Promise.all(handles.map((handle) => handle.finished()))).toEqual([2, 4, 6]);
    expect(await queue.count()).toMatchObject({ done: 3, active: 0 });
  });
});
