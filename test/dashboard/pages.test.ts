import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fatal } from '../../dist/index.js';
import { RedisServer } from '../support/redis.js';
import { freshSqlite, STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';
import { complaints, openPage, startBrowser } from './support/browser.js';
import { startDashboard, type TestDashboard } from './support/dashboard.js';

const HOSTILE = `"><img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>'\u202e{}&`;
const query = (parameters: Record<string, string>) => new URLSearchParams(parameters).toString();

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

/** A bit of everything: waiting, running, dead and done jobs, a schedule, and names that would like to be markup. */
async function fill({ crore }: TestDashboard): Promise<() => Promise<void>> {
  const mails = crore.queue<unknown, unknown>('mails');
  let finish = () => {};
  const running = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const worker = mails.work(
    async (job) => {
      if (job.id === 'running') {
        await job.progress(0.4);
        await running;
      } else if (job.id.startsWith('dead')) throw new Fatal(`no mailbox ${job.id.slice(4)}`);
      return { sent: true };
    },
    { concurrency: 2 },
  );
  await mails.add({ to: 'ada@example.org' }, { id: 'done' });
  const dead = await mails.addMany([1, 2, 3].map((n) => ({ payload: { n }, id: `dead${n}` })));
  await Promise.all(dead.map((handle) => handle.finished().catch(() => {})));
  await mails.add({ slow: true }, { id: 'running' });
  await mails.add({ later: true }, { id: 'later', delay: '1h' });
  const first = { queue: 'idle', payload: { to: 'bob' }, id: 'first' };
  await crore.addTree({ queue: 'idle', payload: { to: 'bob' }, id: 'second', children: [first] });
  const hostile = crore.queue<unknown, unknown>(HOSTILE);
  const failing = hostile.work(() => {
    throw new Fatal(HOSTILE);
  });
  const [broken] = await hostile.addMany([
    { payload: { [HOSTILE]: HOSTILE }, id: HOSTILE, headers: { [HOSTILE]: HOSTILE } },
  ]);
  await broken!.finished().catch(() => {});
  await failing.close();
  await crore.schedule(HOSTILE, '0 4 * * *', { queue: HOSTILE, payload: HOSTILE });
  await until('the slow one runs', async () => (await mails.get('running'))?.state === 'active');
  return async () => {
    finish();
    await worker.close();
  };
}

const PATHS = [
  '',
  'queue?name=mails',
  'queue?name=mails&state=active',
  'queue?name=mails&state=dead&text=mailbox',
  'job?queue=mails&id=dead1',
  'job?queue=mails&id=running',
  'job?queue=idle&id=second',
  'job?queue=mails&id=never-was',
  'queue?name=never-was',
  `queue?${query({ name: HOSTILE })}`,
  `job?${query({ queue: HOSTILE, id: HOSTILE })}`,
  'dead',
  'workers',
  'schedules',
  'flows',
  'flow?id=never-was',
  'rings',
  'ring?name=never-was',
  'login',
];

/** The page has its title and nothing is being loaded any more. */
async function settled(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor();
  await page.locator('.skeleton').first().waitFor({ state: 'detached' });
}

describe.each(STORES)('the pages on %s', (_name, fresh) => {
  let store: TestStore;
  let dashboard: TestDashboard;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    store = await fresh();
    dashboard = await startDashboard(store.url);
    stop = await fill(dashboard);
  });
  afterAll(async () => {
    await stop();
    await dashboard.close();
    await store.stop();
  });
  const open = (options?: Parameters<typeof openPage>[2]) => openPage(browser, `${dashboard.http}/`, options);

  it('show hostile names, payloads and errors as text, run nothing, and ask no other host for anything', async () => {
    const { page, problems, close } = await open();
    for (const path of PATHS) {
      await page.goto(path);
      await settled(page);
      expect(await page.evaluate(() => (globalThis as { hacked?: number }).hacked), path).toBeUndefined();
    }
    await page.goto(`job?${query({ queue: HOSTILE, id: HOSTILE })}`);
    await page.getByText('globalThis.hacked=1').first().waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it('show a first job move, live', async () => {
    const { crore } = dashboard;
    const { page, problems, close } = await open();
    await page.goto('');
    await settled(page);
    await crore.queue('brand-new').add({ hello: 'world' }, { id: 'one' });
    await page.getByRole('link', { name: 'brand-new', exact: true }).first().click();
    await page.getByRole('link', { name: 'one', exact: true }).click();
    await page.getByText('No worker serves the queue').waitFor();
    const worker = crore.queue<unknown, unknown>('brand-new').work(async () => 'moved');
    await page.getByText('Attempt 1 succeeded').waitFor();
    await page.getByText('"moved"').waitFor();
    await worker.close();
    expect(problems).toEqual([]);
    await close();
  });

  it('retry dead jobs that match a filter, after a question with their number', async () => {
    const { crore } = dashboard;
    const queue = crore.queue<{ n: number }, unknown>('to-retry');
    const worker = queue.work((job) => {
      throw new Fatal(job.payload.n % 2 === 0 ? 'even' : 'odd');
    });
    const handles = await queue.addMany(Array.from({ length: 20 }, (_, n) => ({ payload: { n } })));
    await Promise.all(handles.map((handle) => handle.finished().catch(() => {})));
    await worker.close();
    const { page, close } = await open();
    await page.goto('queue?name=to-retry&state=dead&text=odd');
    await page.getByRole('button', { name: 'Retry all matching' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('10 dead jobs').first().waitFor();
    await dialog.getByRole('button', { name: /^Retry/ }).click();
    await until('ten are ready again', async () => (await queue.count()).ready === 10);
    expect(await queue.count()).toMatchObject({ dead: 10, ready: 10 });
    await close();
  });

  it('pause a queue, cancel a job, and change limits', async () => {
    const { crore } = dashboard;
    const queue = crore.queue('by-hand');
    await queue.add(1, { id: 'a' });
    const { page, problems, close } = await open();
    await page.goto('queue?name=by-hand');
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    expect(await queue.isPaused()).toBe(true);
    await page.getByText('Limits:').click();
    await page.getByLabel('At once').first().fill('7');
    await page.getByRole('button', { name: 'Save limits' }).click();
    await until('the limit is set', async () => (await queue.limits()).concurrency === 7);
    await page.goto('job?queue=by-hand&id=a');
    await page.getByRole('button', { name: 'Cancel' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByText('Cancelled by 127.0.0.1 in the dashboard').waitFor();
    await crore.addTree({ queue: 'by-hand', id: 'root', payload: 1, children: [{ queue: 'by-hand', payload: 2 }] });
    await page.goto('job?queue=by-hand&id=root');
    await page.getByRole('button', { name: 'Cancel tree' }).click();
    await dialog.getByText('Cancel 2 jobs of this tree?').waitFor();
    await dialog.getByRole('button', { name: 'Cancel tree' }).click();
    await until('all of it is cancelled', async () => (await queue.count()).cancelled === 3);
    expect(problems).toEqual([]);
    await close();
  });
});

describe('the pages', () => {
  let store: TestStore;
  let dashboard: TestDashboard;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    store = await freshSqlite();
    dashboard = await startDashboard(store.url);
    stop = await fill(dashboard);
  });
  afterAll(async () => {
    await stop();
    await dashboard.close();
    await store.stop();
  });
  const open = (options?: Parameters<typeof openPage>[2]) => openPage(browser, `${dashboard.http}/`, options);

  it('have no complaint of axe, light or dark, and fit a phone without scrolling sideways', async () => {
    const { page, close } = await open({ colorScheme: 'light', bypassCSP: true });
    for (const path of PATHS) {
      await page.setViewportSize({ width: 1_280, height: 900 });
      await page.goto(path);
      await settled(page);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await complaints(page), `${path}, ${colorScheme}`).toEqual([]);
      }
      await page.setViewportSize({ width: 360, height: 740 });
      const [width, shown] = (await page.evaluate('[document.documentElement.scrollWidth, innerWidth]')) as [
        number,
        number,
      ];
      expect(width, path).toBeLessThanOrEqual(shown);
    }
    await close();
  });

  it('can be used with the keyboard', async () => {
    const { page, close } = await open();
    await page.goto('');
    await settled(page);
    await page.keyboard.press('/');
    await page.keyboard.type('mail');
    await page.waitForURL((url) => url.searchParams.get('search') === 'mail');
    await page.getByRole('region', { name: 'Queues' }).getByText('idle').waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    await page.keyboard.press('j');
    const target = (await page.locator(':focus').getAttribute('href'))!;
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.href.endsWith(target));
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('g');
    await page.keyboard.press('d');
    await page.getByRole('heading', { name: 'Dead' }).first().waitFor();
    expect(new URL(page.url()).pathname).toBe('/dead');
    await page.goBack();
    await page.waitForURL((url) => url.href.endsWith(target));
    await close();
  });

  it('are under 100 KB in all, compressed', () => {
    const folder = new URL('../../dist/dashboard/page/', import.meta.url);
    const files = readdirSync(folder).filter((name) => /\.(js|css|html)$/.test(name));
    const bytes = files.map((name) => gzipSync(readFileSync(new URL(name, folder)), { level: 9 }).length);
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThan(100 * 1_024);
  });
});

describe('a store that goes away while a page is open', () => {
  it('is told in a banner, which goes when the store is back', async () => {
    const redis = await RedisServer.start();
    const dashboard = await startDashboard(redis.url, { timeout: 2_000 });
    await dashboard.crore.queue('mails').add(1, { id: 'a' });
    const { page, problems, close } = await openPage(browser, `${dashboard.http}/`);
    await page.goto('queue?name=mails');
    await page.getByRole('link', { name: 'a', exact: true }).waitFor();
    process.kill(redis.pid, 'SIGSTOP');
    await page.getByText('The store has not answered').waitFor({ timeout: 30_000 });
    expect(await page.getByRole('link', { name: 'a', exact: true }).isVisible()).toBe(true);
    process.kill(redis.pid, 'SIGCONT');
    await page.getByText('The store has not answered').waitFor({ state: 'detached', timeout: 30_000 });
    await dashboard.crore.queue('mails').add(2, { id: 'b' });
    await page.getByRole('link', { name: 'b', exact: true }).waitFor();
    expect(problems).toEqual([]);
    await close();
    await dashboard.close();
    await redis.stop();
  });
});

describe('a dashboard with tokens', () => {
  let store: TestStore;
  let dashboard: TestDashboard;
  beforeAll(async () => {
    store = await freshSqlite();
    dashboard = await startDashboard(store.url, { tokens: { write: 'the-long-word', read: 'the-short-word' } });
    await dashboard.crore.queue('mails').add(1, { id: 'a' });
  });
  afterAll(async () => {
    await dashboard.close();
    await store.stop();
  });

  it('asks for one, refuses a wrong one, and goes on to the page that was asked for', async () => {
    const { page, close } = await openPage(browser, `${dashboard.http}/`);
    await page.goto('queue?name=mails');
    await page.getByLabel('Token').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('Wrong token').waitFor();
    await page.getByLabel('Token').fill('the-long-word');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'mails' }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'mails' }).waitFor();
    await close();
  });

  it('shows no buttons to those who may only look', async () => {
    const { page, close } = await openPage(browser, `${dashboard.http}/`);
    await page.goto('queue?name=mails');
    await page.getByLabel('Token').fill('the-short-word');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('link', { name: 'a', exact: true }).waitFor();
    for (const name of ['Pause', 'Cancel', 'Cancel all', 'Remove', 'Obliterate'])
      expect(await page.getByRole('button', { name }).count(), name).toBe(0);
    await close();
  });
});
