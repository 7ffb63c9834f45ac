import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DeadView, HistoryView, JobView, OverviewView } from '../../dist/dashboard/api.js';
import { Fatal, open } from '../../dist/index.js';
import { freshPostgres, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';
import { Lakh } from './support/lakh.js';
import { ServeProcess } from './support/process.js';

describe('crore serve on PostgreSQL', () => {
  let store: TestStore;
  let server: ServeProcess;
  beforeAll(async () => {
    store = await freshPostgres();
    server = await ServeProcess.start(['--store', store.url, '--addr', 'localhost:0', '--http', 'localhost:0']);
  });
  afterAll(async () => {
    await server.end('SIGTERM');
    await store.stop();
  });
  const get = async <T>(path: string) => (await (await fetch(`${server.http}/${path}`)).json()) as T;
  const call = async (name: string, body: object) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    return (await (await fetch(`${server.http}/crore.v1.Crore/${name}`, init)).json()) as Record<string, never>;
  };

  it('adds jobs over HTTP, and a worker with the library gets them over gRPC', async () => {
    const jobs = [
      { id: 'good', payload: { n: 1 } },
      { id: 'bad', payload: { n: 2 } },
    ];
    expect(await call('Add', { queue: 'mixed', jobs })).toMatchObject({
      results: [{ outcome: 'created' }, { outcome: 'created' }],
    });
    const crore = await open(`grpc://${server.address}`, { logger: false });
    const queue = crore.queue<{ n: number }, number>('mixed');
    const worker = queue.work(async (job) => {
      await job.log(`n is ${job.payload.n}`);
      if (job.payload.n === 2) throw new Fatal('no good');
      return job.payload.n * 10;
    });
    await until('the end of both jobs', async () => {
      const [good, bad] = [await queue.get('good'), await queue.get('bad')];
      return good?.result === 10 && bad?.state === 'dead';
    });
    expect(await call('Count', { queue: 'mixed' })).toMatchObject({ counts: { done: 1, dead: 1, ready: 0 } });
    await worker.close();
    await crore.close();
  });

  it('gives jobs of the Lakh protocol to its workers', async () => {
    const lakh = new Lakh(server.address);
    const worker = lakh.join('lakh');
    worker.answer = () => 'SUCCEEDED';
    await lakh.work('lakh', [{ id: 'one', name: 'lakh' }]);
    await worker.got(1);
    expect(worker.jobs[0]).toMatchObject({ id: 'one', name: 'lakh' });
    await until('the report', async () => {
      const { counts } = (await call('Count', { queue: 'lakh' })) as { counts?: { ready: number; active: number } };
      return counts?.ready === 0 && counts.active === 0;
    });
    lakh.close();
  });

  it('shows the first screen, a job, dead jobs, flows, rings and history in the dashboard', async () => {
    const view = await until('the counts of the first screen', async () => {
      const read = await get<OverviewView>('api/overview');
      return read.queues.some(({ name, counts }) => name === 'mixed' && counts.dead === 1) && read;
    });
    expect((view as OverviewView).queues.map(({ name }) => name).sort()).toEqual(['lakh', 'mixed']);
    expect(await get<JobView>('api/job?queue=mixed&id=bad')).toMatchObject({ state: 'dead', log: ['n is 2'] });
    const { groups } = await get<DeadView>('api/dead?queue=mixed');
    expect(groups).toMatchObject([{ count: 1, error: expect.stringContaining('no good') }]);
    await until('the history', async () => {
      const { points } = await get<HistoryView>('api/history?queue=mixed&range=hour');
      const sum = (of: 'added' | 'done' | 'dead') => points.reduce((total, point) => total + point[of], 0);
      return sum('added') === 2 && sum('done') === 1 && sum('dead') === 1;
    });
    expect(await get('api/flows')).toMatchObject({ flows: [] });
    expect(await get('api/rings')).toMatchObject({ rings: [] });
    expect(
      (await fetch(`${server.http}/`, { headers: { accept: 'text/html' } })).headers.get('content-type'),
    ).toContain('text/html');
  });
});
