import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FlowsView } from '../../dist/dashboard/api.js';
import { openJournal } from '../../dist/flow/journal/open.js';
import { openRing } from '../../dist/ring/index.js';
import { place } from '../flow/support.js';
import { start } from '../ring/support/w8y.js';
import { STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';
import { complaints, openPage, startBrowser } from './support/browser.js';
import { startDashboard, type TestDashboard } from './support/dashboard.js';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

describe.each(STORES)('flows and rings in a browser, on %s', (_name, fresh) => {
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
  const open = (options?: Parameters<typeof openPage>[2]) => openPage(browser, `${dashboard.http}/`, options);

  it('a flow is a live graph and a Gantt chart, and can be cancelled', async () => {
    const dir = place();
    dir.write('flow.json', {
      nodes: {
        fetch: { run: 'true' },
        broken: { run: 'echo oh no >&2; exit 3', needs: ['fetch'] },
        slow: { run: 'until test -e go; do sleep 0.05; done', needs: ['fetch'] },
        last: { run: 'until test -e never; do sleep 0.05; done', needs: ['slow'] },
      },
    });
    const running = dir.start('run', 'flow.json', '--store', store.url, '-j', '2', '-k', '-q');
    const flows = () => dashboard.get<FlowsView>('api/flows');
    await until('the flow runs', async () => ((await flows()).flows[0]?.counts.running ?? 0) > 0);
    const { page, problems, close } = await open({ bypassCSP: true });
    await page.goto('flows');
    await page.getByRole('link', { name: 'flow', exact: true }).click();
    const node = (id: string, state: string) =>
      page.getByRole('button', { name: new RegExp(`${id}\\b.*\\b${state}`, 'i') });
    await node('slow', 'running').waitFor();
    await node('last', 'blocked').waitFor();
    dir.write('go', '');
    await node('slow', 'done').waitFor();
    await node('last', 'running').waitFor();
    expect(await complaints(page)).toEqual([]);
    await node('broken', 'failed').click();
    const panel = page.getByRole('region', { name: 'The chosen node' });
    await panel.getByText('oh no', { exact: true }).first().waitFor();
    await page.getByRole('link', { name: 'Gantt' }).click();
    await page
      .getByRole('region', { name: /Nodes by the time they started/ })
      .getByText('fetch')
      .first()
      .waitFor();
    await page.getByLabel('Critical path').check();
    expect(await complaints(page)).toEqual([]);
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the flow' }).click();
    await running.exit();
    await page.getByText('cancelled').first().waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it('a flow of ten thousand nodes is shown in groups that can be opened one by one', async () => {
    const nodes: Record<string, object> = { begin: { run: 'true' } };
    for (let i = 0; i < 10_000; i++) nodes[`part-${i}`] = { run: 'true', needs: ['begin'] };
    nodes.end = { run: 'true', needs: Object.keys(nodes).slice(1) };
    const journal = await openJournal(store.url);
    const size = Object.keys(nodes).length;
    const info = {
      id: 'wide',
      name: 'wide',
      file: '',
      state: 'running' as const,
      size,
      created: Date.now(),
      host: 'h',
      pid: 1,
    };
    await journal.begin(info, JSON.stringify({ name: 'wide', env: {}, tokens: {}, nodes }));
    const { page, problems, close } = await open();
    await page.goto('flow?id=wide');
    await page.getByText('10,002 nodes in').waitFor();
    const parts = page.getByRole('button', { name: /part-/ });
    await parts.first().waitFor();
    expect(await parts.count()).toBeLessThan(500);
    expect(problems).toEqual([]);
    await close();
    await journal.close();
  });

  it('a ring shows who works on which item', async () => {
    const ring = await openRing(store.url, { prefix: 'feeds' });
    await ring.add('<b>acme</b>', 'globex');
    await ring.close();
    const child = start(['-u', store.url, '-k', 'feeds', '-q', 'sh', '-c', 'echo on; read line'], { open: true });
    await child.says('on');
    const { page, problems, close } = await open({ bypassCSP: true });
    await page.goto('rings');
    await page.getByRole('link', { name: 'feeds:list' }).click();
    await page.getByText('worked on').first().waitFor();
    await page.getByText('<b>acme</b>').first().waitFor();
    expect(await complaints(page)).toEqual([]);
    child.endInput();
    await child.ended;
    await page.getByText('worked on').first().waitFor({ state: 'detached' });
    expect(problems).toEqual([]);
    await close();
  });
});
