import { expect, it } from 'vitest';
import { newId } from '../../dist/job/id.js';
import { openSqlite } from '../../dist/store/sqlite/open.js';
import { newJob } from '../support/jobs.js';

it('new jobs added at once count with their bytes, not with their characters', async () => {
  const store = await openSqlite(':memory:', { timeout: 10_000 });
  const add = (payloads: string[], bytes?: number) =>
    store.add(
      'q',
      payloads.map((payload) => newJob(newId(), { fresh: true, payload })),
      { bytes },
    );
  const texts = ['"plain"', JSON.stringify('é😀'), '""', '1', ''];
  const size = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  await add(texts);
  expect(await add(['1'], size)).toMatchObject([{ outcome: 'full' }]);
  expect(await add(['1'], size + 1)).toMatchObject([{ outcome: 'created' }]);
  await store.close();
});

it('a failing call among new jobs added at once leaves none of them', async () => {
  const store = await openSqlite(':memory:', { timeout: 10_000 });
  const jobs = Array.from({ length: 10 }, () => newJob(newId(), { fresh: true }));
  await expect(store.add('q', [...jobs, jobs[0]!])).rejects.toThrow();
  expect(await store.count('q')).toMatchObject({ ready: 0 });
  expect(await store.list('q', { state: 'ready', limit: 10 })).toEqual({ jobs: [] });
  await store.close();
});
