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
    expect(await (await queue.get('good'))!.finished()).toBe(10);
    await until('the dead job', async () => (await queue.get('bad'))?.state === 'dead');
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
    const { queues } = await until('the first screen', async () => {
      const view = await get<OverviewView>('api/overview');
      return view.queues?.some(({ name, counts }) => name === 'mixed' && counts.dead === 1) ? view : undefined;
    });
    expect(queues.map(({ name }) => name).sort()).toEqual(['lakh', 'mixed']);
    expect(await get<JobView>('api/job?queue=mixed&id=bad')).toMatchObject({ state: 'dead', log: ['n is 2'] });
    const dead = await get<DeadView>('api/dead');
    expect(JSON.stringify(dead)).toContain('no good');
    const history = await until('the history', async () => {
      const view = await get<HistoryView>('api/history?queue=mixed&range=hour');
      return JSON.stringify(view).includes('1') ? view : undefined;
    });
    console.log(JSON.stringify(history).slice(0, 600), JSON.stringify(dead).slice(0, 500));
    expect(await get('api/flows')).toMatchObject({ flows: [] });
    expect(await get('api/rings')).toMatchObject({ rings: [] });
    expect((await fetch(`${server.http}/`)).headers.get('content-type')).toContain('text/html');
  });
});
