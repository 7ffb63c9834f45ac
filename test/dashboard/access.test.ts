import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ActionResult, BulkProgress, SessionView } from '../../dist/dashboard/api.js';
import { FailedLogIns } from '../../dist/dashboard/http/failed-log-ins.js';
import { LogIns } from '../../dist/dashboard/http/log-in.js';
import { freshSqlite, type TestStore } from '../support/stores.js';
import { type DashboardOptions, startDashboard, type TestDashboard } from './support/dashboard.js';

let store: TestStore;
const open: TestDashboard[] = [];
beforeAll(async () => {
  store = await freshSqlite();
});
afterAll(async () => {
  for (const one of open) await one.close();
  await store.stop();
});
async function start(options?: DashboardOptions): Promise<TestDashboard> {
  const dashboard = await startDashboard(store.url, options);
  open.push(dashboard);
  return dashboard;
}

/** Requests with headers that fetch does not let anybody set. */
function raw(url: string, headers: Record<string, string>, method = 'GET', body = ''): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method, headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode!);
    });
    sent.on('error', reject).end(body);
  });
}

describe('a dashboard without tokens on a loopback address', () => {
  let dashboard: TestDashboard;
  beforeAll(async () => {
    dashboard = await start();
  });

  it('allows everything', async () => {
    expect(await dashboard.get<SessionView>('api/session')).toMatchObject({ access: 'write', loggedIn: false });
    const answer = await dashboard.post('api/act', { action: 'pause', queue: 'q' });
    expect(await answer.json()).toEqual({ changed: 1 });
  });

  it('shows the page to browsers, and the calls to programs', async () => {
    const page = await fetch(dashboard.http, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await page.text()).toContain('<base href="/">');
    expect(await (await fetch(dashboard.http)).text()).toContain('Crore job server');
  });

  it('sends every answer with a policy that allows nothing from elsewhere, and forbids frames', async () => {
    for (const path of ['', 'queue?name=x', 'assets/app.js', 'assets/none.js', 'api/session', 'api/no-such-view']) {
      const { headers } = await fetch(`${dashboard.http}/${path}`, { headers: { accept: 'text/html' } });
      const policy = headers.get('content-security-policy')!;
      expect(policy, path).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('unsafe');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  it('refuses changes that do not come from its own page', async () => {
    const act = `${dashboard.http}/api/act`;
    const body = JSON.stringify({ action: 'pause', queue: 'foreign' });
    const own = { 'x-crore-dashboard': '1', 'content-type': 'application/json' };
    const host = new URL(dashboard.http).host;
    const cases: [Record<string, string>, number][] = [
      [{ 'content-type': 'application/json' }, 403],
      [{ 'x-crore-dashboard': '1', 'content-type': 'text/plain' }, 403],
      [{ ...own, origin: 'https://evil.example' }, 403],
      [{ ...own, 'sec-fetch-site': 'cross-site' }, 403],
      [{ ...own, 'sec-fetch-site': 'same-site' }, 403],
      [{ ...own, host: 'evil.example' }, 403],
      [{ ...own, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }, 200],
    ];
    for (const [headers, status] of cases)
      expect(await raw(act, headers, 'POST', body), JSON.stringify(headers)).toBe(status);
    expect(await raw(act, own, 'GET')).toBe(404);
    expect(await raw(act, own, 'PUT', body)).toBe(405);
    expect(await raw(`${dashboard.http}/`, { accept: 'text/html', host: 'evil.example' })).toBe(403);
  });

  it('names what is wrong with a request, and changes nothing', async () => {
    const cases: [unknown, string][] = [
      [{ action: 'explode', queue: 'q' }, "unknown action 'explode'"],
      [{ action: 'cancel', queue: 'q', ids: [] }, 'ids must be a list of 1 to 1000 job ids'],
      [{ action: 'cancel', queue: 'q', ids: ['a', 7] }, 'job id must be a string, not 7'],
      [{ action: 'pause', queue: '' }, 'queue name must not be empty'],
      [{ action: 'pause', queue: 'q', speed: 1 }, "action: unknown option 'speed'"],
      [{ action: 'limits', queue: 'q', limits: { concurrency: -1 } }, 'limits.concurrency must be a whole number'],
      [{ action: 'run-schedule', name: 'none' }, "there is no schedule 'none'"],
      [[], 'the request must be a JSON object'],
      [null, 'the request must be a JSON object'],
    ];
    for (const [body, error] of cases) {
      const answer = await dashboard.post('api/act', body);
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(((await answer.json()) as { error: string }).error).toContain(error);
    }
    for (const path of [
      'api/jobs?queue=q&state=lost',
      'api/jobs?state=ready',
      'api/history?range=year',
      'api/live?view=x',
    ])
      expect((await dashboard.refusal(path)).status, path).toBeGreaterThanOrEqual(400);
    expect(await dashboard.refusal('api/jobs?queue=q&queue=r')).toMatchObject({
      error: expect.stringContaining('twice'),
    });
    expect(await dashboard.refusal('api/__proto__')).toMatchObject({ status: 404 });
    const large = await dashboard.post('api/act', { action: 'pause', queue: 'x'.repeat(300_000) });
    expect(large.status).toBe(400);
  });

  it('logs nothing that somebody made up', async () => {
    await dashboard.post('api/act', { action: 'cancel-flow', id: 'x', by: 'FORGED', msg: 'FORGED', level: 'fatal' });
    const { lines } = dashboard as unknown as { lines: object[] };
    expect(JSON.stringify(lines)).not.toContain('FORGED');
  });

  it('logs what is done by hand, with who and how many', async () => {
    await dashboard.crore.queue('logged').add(1, { id: 'a' });
    await dashboard.post('api/act', { action: 'cancel', queue: 'logged', ids: ['a', 'none'] });
    const { lines } = dashboard as unknown as { lines: { fields: object; text: string }[] };
    expect(lines.at(-1)).toEqual({
      fields: { by: '127.0.0.1 in the dashboard', action: 'cancel', queue: 'logged', jobs: 2, first: 'a', changed: 1 },
      text: 'done by hand in the dashboard',
    });
  });
});

describe('bulk actions', () => {
  let dashboard: TestDashboard;
  beforeAll(async () => {
    dashboard = await start();
  });
  const bulk = async (body: object): Promise<BulkProgress> => {
    const lines = (await (await dashboard.post('api/bulk', body)).text()).trim().split('\n');
    return JSON.parse(lines.at(-1)!) as BulkProgress;
  };

  it('count first, then change exactly what matches the filter', async () => {
    const queue = dashboard.crore.queue('bulk');
    await queue.addMany(
      Array.from({ length: 1_200 }, (_, i) => ({ payload: i % 3 === 0 ? 'fizz' : 'no', id: `j${i}` })),
    );
    const filter = { state: 'ready', text: 'fizz' };
    expect(await bulk({ action: 'count', queue: 'bulk', filter })).toEqual({ seen: 1_200, changed: 400, done: true });
    expect(await queue.count()).toMatchObject({ ready: 1_200 });
    expect(await bulk({ action: 'cancel', queue: 'bulk', filter })).toMatchObject({ changed: 400, done: true });
    expect(await queue.count()).toMatchObject({ ready: 800, cancelled: 400 });
    expect((await queue.get('j0'))!.actions).toMatchObject([{ action: 'cancelled', by: '127.0.0.1 in the dashboard' }]);
    const ended = { state: 'cancelled', id: 'j1' };
    const { changed } = await bulk({ action: 'remove', queue: 'bulk', filter: ended });
    expect(await queue.count()).toMatchObject({ ready: 800, cancelled: 400 - changed });
  });

  it('leave alone what is added after they began, and come to an end', async () => {
    const queue = dashboard.crore.queue('flood');
    await queue.addMany(Array.from({ length: 1_500 }, (_, i) => ({ payload: i, id: `old-${i}` })));
    let flooding = true;
    let added = 0;
    const flood = async () => {
      while (flooding) await queue.addMany(Array.from({ length: 200 }, () => ({ payload: ++added })));
    };
    await new Promise((resolve) => setTimeout(resolve, 5)); // the clock has to move on
    const floods = flood();
    const { changed } = await bulk({ action: 'cancel', queue: 'flood', filter: { state: 'ready' } });
    flooding = false;
    await floods;
    expect(changed).toBeGreaterThanOrEqual(1_500);
    expect(changed).toBeLessThan(1_500 + added);
    expect(await queue.count()).toMatchObject({ cancelled: Math.min(changed, 1_000), ready: 1_500 + added - changed });
  });

  it('are refused where the state does not fit the action', async () => {
    const wrong = await dashboard.post('api/bulk', { action: 'retry', queue: 'bulk', filter: { state: 'ready' } });
    expect(wrong.status).toBe(400);
    const none = await dashboard.post('api/bulk', { action: 'cancel', queue: 'bulk' });
    expect(none.status).toBe(400);
  });
});

describe('a dashboard for looking only', () => {
  it('shows everything and changes nothing', async () => {
    const dashboard = await start({ most: 'read' });
    expect(await dashboard.get<SessionView>('api/session')).toMatchObject({ access: 'read' });
    await dashboard.crore.queue('watched').add(1, { id: 'a' });
    const act = await dashboard.post('api/act', { action: 'cancel', queue: 'watched', ids: ['a'] });
    const bulk = await dashboard.post('api/bulk', { action: 'cancel', queue: 'watched', filter: { state: 'ready' } });
    expect([act.status, bulk.status]).toEqual([403, 403]);
    const count = await dashboard.post('api/bulk', { action: 'count', queue: 'watched', filter: { state: 'ready' } });
    expect(await count.text()).toContain('"changed":1,"done":true');
    expect((await dashboard.crore.queue('watched').get('a'))!.state).toBe('ready');
  });
});

describe('a dashboard of a server with tokens', () => {
  let dashboard: TestDashboard;
  beforeAll(async () => {
    dashboard = await start({ tokens: { write: 'the-long-word', read: 'the-short-word' } });
  });
  const logIn = async (token: unknown) => {
    const answer = await dashboard.post('api/login', { token });
    return { status: answer.status, cookie: answer.headers.get('set-cookie') ?? '' };
  };
  const cookieOf = (text: string) => ({ cookie: text.split(';')[0]! });

  it('shows the page to everybody, and nothing else without a log-in', async () => {
    const page = await fetch(`${dashboard.http}/login`);
    expect(page.status).toBe(200);
    for (const path of ['api/session', 'api/overview', 'api/live?view=overview', 'api/job?queue=q&id=a'])
      expect((await dashboard.refusal(path)).status, path).toBe(401);
    expect((await dashboard.post('api/act', { action: 'pause', queue: 'q' })).status).toBe(401);
  });

  it('gives a cookie for a token that no script can read and no other site can use', async () => {
    const { status, cookie } = await logIn('the-long-word');
    expect(status).toBe(204);
    expect(cookie).toMatch(/^crore_session=write\.\d+\.[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
    expect(cookie).not.toContain('the-long-word');
    const session = await dashboard.get<SessionView>('api/session', cookieOf(cookie));
    expect(session).toMatchObject({ access: 'write', loggedIn: true });
    const act = await dashboard.post('api/act', { action: 'resume', queue: 'q' }, cookieOf(cookie));
    expect(await act.json()).toEqual({ changed: 1 } satisfies ActionResult);
    const out = await dashboard.post('api/logout', {}, cookieOf(cookie));
    expect(out.headers.get('set-cookie')).toMatch(/^crore_session=; .*Max-Age=0/);
  });

  it('lets the second token look only', async () => {
    const { cookie } = await logIn('the-short-word');
    expect(await dashboard.get<SessionView>('api/session', cookieOf(cookie))).toMatchObject({ access: 'read' });
    const act = await dashboard.post('api/act', { action: 'pause', queue: 'q' }, cookieOf(cookie));
    expect(act.status).toBe(403);
    const forged = cookie.replace('read.', 'write.');
    expect((await dashboard.refusal('api/session', { headers: cookieOf(forged) })).status).toBe(401);
  });

  it('also takes the token itself, as every call does', async () => {
    const headers = { authorization: 'Bearer the-long-word' };
    expect(await dashboard.get<SessionView>('api/session', headers)).toMatchObject({ access: 'write' });
  });

  it('refuses wrong tokens, and after many all tokens from that address, but from no other', async () => {
    for (const token of ['', 'wrong', 7, null, { a: 1 }]) expect((await logIn(token)).status).toBe(401);
    for (let i = 0; i < 30; i++) await logIn(`guess ${i}`);
    expect((await logIn('the-long-word')).status).toBe(429);
    const other = httpRequest(`${dashboard.http}/api/login`, {
      method: 'POST',
      localAddress: '127.0.0.2',
      headers: { 'content-type': 'application/json', 'x-crore-dashboard': '1' },
    });
    other.end(JSON.stringify({ token: 'the-long-word' }));
    const [answer] = (await once(other, 'response')) as [IncomingMessage];
    answer.resume();
    expect(answer.statusCode).toBe(204);
  });
});

describe('failed log-ins', () => {
  const fail = (failures: FailedLogIns, address: string, times: number) => {
    for (let i = 0; i < times; i++) failures.add(address);
  };

  it('count for a minute from the first, and together for the addresses of an IPv6 network', () => {
    let now = 0;
    const failures = new FailedLogIns(() => now);
    fail(failures, '2001:db8::1', 10);
    now += 30_000;
    fail(failures, '2001:db8:0:0:ffff::2', 10);
    expect(failures.areTooMany('2001:db8::3')).toBe(true);
    expect(failures.areTooMany('2001:db8:0:1::3')).toBe(false);
    expect(failures.areTooMany('::ffff:192.0.2.1')).toBe(false);
    now += 30_001;
    expect(failures.areTooMany('2001:db8::3')).toBe(false);
    expect(failures.size).toBe(0);
  });

  it('are remembered for ten thousand addresses at most', () => {
    const failures = new FailedLogIns(() => 0);
    for (let i = 0; i < 20_000; i++) failures.add(`10.0.${i >> 8}.${i & 255}`);
    fail(failures, '192.0.2.1', 20);
    expect(failures.areTooMany('192.0.2.1')).toBe(true);
    expect(failures.size).toBeLessThanOrEqual(10_000);
  });
});

describe('a log-in', () => {
  it('ends after twelve hours, and with the token', () => {
    let now = 1_000_000;
    const place = { base: '/jobs/', secure: true };
    const logIns = new LogIns({ write: 'one' }, place, () => now);
    const cookie = logIns.logIn('one', '::1')!;
    expect(cookie).toContain('; Path=/jobs/;');
    expect(cookie).toMatch(/; Secure$/);
    const headers = new Headers({ cookie: `other=1; ${cookie.split(';')[0]}` });
    expect(logIns.accessOf(headers)).toBe('write');
    expect(new LogIns({ write: 'one' }, place, () => now).accessOf(headers)).toBe('write');
    expect(new LogIns({ write: 'two' }, place, () => now).accessOf(headers)).toBeUndefined();
    now += 12 * 3_600_000 + 1;
    expect(logIns.accessOf(headers)).toBeUndefined();
  });
});
