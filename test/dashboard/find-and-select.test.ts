import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FoundView } from '../../dist/dashboard/api.js';
import { Fatal } from '../../dist/index.js';
import { STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';
import { complaints, openPage, startBrowser } from './support/browser.js';
import { startDashboard, type TestDashboard } from './support/dashboard.js';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

describe.each(STORES)('a dashboard on %s', (_name, fresh) => {
  let store: TestStore;
  let dashboard: TestDashboard;
  beforeAll(async () => {
    store = await fresh();
    dashboard = await startDashboard(store.url);
    const { crore } = dashboard;
    await Promise.all(Array.from({ length: 120 }, (_, i) => crore.queue(`q-${String(i).padStart(3, '0')}`).add(i)));
    await crore.queue('q-007').add(1, { id: 'wanted' });
    await crore.queue('q-111').add(1, { id: 'wanted', delay: '1h' });
  });
  afterAll(async () => {
    await dashboard.close();
    await store.stop();
  });
  const open = (options?: Parameters<typeof openPage>[2]) => openPage(browser, `${dashboard.http}/`, options);

  it('finds a job by its id in whatever queue, and says how many queues it looked through', async () => {
    const found = await dashboard.get<FoundView>('api/find?id=wanted');
    expect(found).toMatchObject({ queues: 120, looked: 120 });
    expect(found.after).toBeUndefined();
    expect(found.jobs).toEqual([
      { queue: 'q-007', id: 'wanted', state: 'ready' },
      { queue: 'q-111', id: 'wanted', state: 'scheduled' },
    ]);
    expect((await dashboard.get<FoundView>('api/find?id=wanted&after=q-007')).jobs).toMatchObject([{ queue: 'q-111' }]);
    expect(await dashboard.get<FoundView>('api/find?id=nowhere')).toMatchObject({ jobs: [], looked: 120 });
    expect(await dashboard.refusal('api/find')).toMatchObject({ status: 400 });
  });

  it('stops after twenty jobs with the same id, and goes on from there', async () => {
    const { crore } = dashboard;
    await Promise.all(
      Array.from({ length: 120 }, (_, i) => crore.queue(`q-${String(i).padStart(3, '0')}`).add(i, { id: 'same' })),
    );
    const first = await dashboard.get<FoundView>('api/find?id=same');
    expect(first.looked).toBeLessThan(120);
    let view = first;
    const queues = new Set(first.jobs.map(({ queue }) => queue));
    while (view.after !== undefined) {
      view = await dashboard.get<FoundView>(`api/find?id=same&after=${view.after}`);
      for (const { queue } of view.jobs) queues.add(queue);
    }
    expect([queues.size, view.looked]).toEqual([120, 120]);
  });

  it('is searched for a job with / from any page', async () => {
    const { page, problems, close } = await open({ bypassCSP: true });
    await page.goto('workers');
    await page.getByRole('heading', { name: 'Workers' }).waitFor();
    await page.keyboard.press('/');
    await page.getByRole('heading', { name: 'Find a job' }).waitFor();
    await page.locator('[data-search]:focus').waitFor();
    await page.keyboard.type('wanted');
    await page.getByText('q-111').waitFor();
    expect(await complaints(page)).toEqual([]);
    await page.goto('?search=wanted');
    await page.getByRole('link', { name: 'wanted' }).first().click();
    await page.getByRole('heading', { name: 'wanted' }).waitFor();
    await page.goto('find?job=nowhere');
    await page.getByText('No job has this id in any of 120 queues').waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it('acts on the rows that are selected, after a question with their number', async () => {
    const queue = dashboard.crore.queue<unknown, unknown>('selected');
    const worker = queue.work(() => {
      throw new Fatal('no');
    });
    const handles = await queue.addMany(Array.from({ length: 6 }, (_, n) => ({ payload: n, id: `dead-${n}` })));
    await Promise.all(handles.map((handle) => handle.finished().catch(() => {})));
    await worker.close();
    const { page, problems, close } = await open({ bypassCSP: true });
    await page.goto('queue?name=selected&state=dead');
    for (const id of ['dead-1', 'dead-3']) await page.getByLabel(`Select ${id}`).check();
    await page.getByText('2 jobs selected').waitFor();
    expect(await complaints(page)).toEqual([]);
    await page.getByRole('button', { name: 'Retry selected' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Retry 2 jobs' }).click();
    await until('two are ready again', async () => (await queue.count()).ready === 2);
    await page.getByText('jobs selected').waitFor({ state: 'detached' });
    expect((await queue.get('dead-1'))!.state).toBe('ready');
    expect((await queue.get('dead-2'))!.state).toBe('dead');
    await page.getByLabel('Select dead-1').waitFor({ state: 'detached' });
    await page.getByLabel('Select all on this page').check();
    await page.getByText('4 jobs selected').waitFor();
    await page.getByRole('button', { name: 'Remove selected' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove 4 jobs' }).click();
    await until('they are gone', async () => (await queue.count()).dead === 0);
    expect(problems).toEqual([]);
    await close();
  });
});
