import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobView } from '../../dist/dashboard/api.js';
import { ALL_STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';
import { startDashboard, type TestDashboard } from './support/dashboard.js';

describe.each(ALL_STORES)('the time line of a job on %s', (_name, fresh) => {
  let store: TestStore;
  let dashboard: TestDashboard;
  beforeAll(async () => {
    store = await fresh();
    dashboard = await startDashboard(store.url);
  });
  afterAll(async () => {
    await dashboard.close();
    await store.stop();
  });
  const storyOf = async (queue: string) => {
    const { story } = await dashboard.get<JobView>(`api/job?queue=${queue}&id=a`);
    return story.filter(({ kind }) => kind !== 'waited');
  };

  it('has log lines and progress in order, within the attempt that wrote them', async () => {
    const queue = dashboard.crore.queue('wrote');
    const release = new AbortController();
    const worker = queue.work(
      async (job) => {
        await job.log(`begins ${job.attempt}`);
        await job.progress({ percent: 50 });
        if (job.attempt === 1) throw new Error('once');
        await new Promise((resolve) => release.signal.addEventListener('abort', resolve));
      },
      { backoff: () => 5 },
    );
    await queue.add(1, { id: 'a', attempts: 2 });
    const texts = async () => (await storyOf('wrote')).map(({ text }) => text);
    await until('the second attempt has written', async () => (await texts()).length === 7);
    expect(await texts()).toEqual([
      'Added',
      'Attempt 1 failed',
      'begins 1',
      'Progress: {"percent":50}',
      'Attempt 2 is running',
      'begins 2',
      'Progress: {"percent":50}',
    ]);
    const times = (await storyOf('wrote')).map(({ at }) => at);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    release.abort();
    await worker.close();
  });

  it('has many lines in a row as one event with the last hundred', async () => {
    const queue = dashboard.crore.queue('chatty');
    const worker = queue.work(async (job) => {
      await Promise.all(Array.from({ length: 150 }, (_, i) => job.log(`line ${i}`)));
    });
    const handle = await queue.add(1, { id: 'a' });
    await handle.finished();
    const [, attempt, lines, end, ...rest] = await storyOf('chatty');
    expect([attempt?.text, end?.text, rest]).toEqual(['Attempt 1 succeeded', 'Done', []]);
    expect(lines).toMatchObject({ kind: 'log', text: '150 log lines, the last 100 here' });
    expect(lines!.lines).toHaveLength(100);
    expect(lines!.lines!.at(-1)!.text).toBe('line 149');
    await worker.close();
  });
});
