import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dashboard, nodeListener } from '../../dist/dashboard/index.js';
import { type Crore, open } from '../../dist/index.js';
import { freshSqlite, type TestStore } from '../support/stores.js';

const examples = fileURLToPath(new URL('../../examples/dashboard/', import.meta.url));
let store: TestStore;
beforeAll(async () => {
  store = await freshSqlite();
});
afterAll(() => store.stop());

const CHANGE = {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-crore-dashboard': '1' },
  body: JSON.stringify({ action: 'pause', queue: 'q' }),
};

describe('the dashboard in an application', () => {
  const children: ChildProcess[] = [];
  afterAll(async () => {
    for (const child of children) {
      const gone = once(child, 'exit');
      child.kill();
      await gone;
    }
  });

  it.each(['node-http', 'express', 'fastify', 'hono'])(
    '%s: the example serves page, files, views and changes',
    async (name) => {
      const env = { ...process.env, PORT: '0', CRORE_STORE: store.url };
      const child = spawn(process.execPath, [`${examples}${name}.mjs`], { env, stdio: ['ignore', 'pipe', 'inherit'] });
      children.push(child);
      const [address] = (await once(createInterface(child.stdout!), 'line')) as [string];
      const page = await fetch(address);
      expect(await page.text()).toContain('<base href="/jobs/">');
      const moved = await fetch(address.replace(/\/$/, ''), { redirect: 'manual' });
      expect([moved.status, moved.headers.get('location')]).toEqual([308, '/jobs/']);
      const script = await fetch(`${address}assets/app.js`);
      expect(script.headers.get('content-type')).toContain('javascript');
      expect(await (await fetch(`${address}api/session`)).json()).toMatchObject({ access: 'write', store: 'sqlite' });
      expect(await (await fetch(`${address}api/act`, CHANGE)).json()).toEqual({ changed: 1 });
      expect(await (await fetch(new URL('/', address))).text()).toBe('hello\n');
      const live = await fetch(`${address}api/live?view=overview`);
      const { value } = await live.body!.getReader().read();
      expect(new TextDecoder().decode(value)).toContain('event: content');
    },
  );

  it('Next.js: the route handlers of the example answer', async () => {
    process.env.CRORE_STORE = store.url;
    const { GET, POST } = (await import(pathToFileURL(`${examples}next-route.mjs`).href)) as {
      GET: (request: Request) => Promise<Response>;
      POST: (request: Request) => Promise<Response>;
    };
    expect(await (await GET(new Request('http://localhost:3000/jobs/queue?name=q'))).text()).toContain(
      '<base href="/jobs/">',
    );
    expect(await (await POST(new Request('http://localhost:3000/jobs/api/act', CHANGE))).json()).toEqual({
      changed: 1,
    });
  });
});

describe('dashboard()', () => {
  let crore: Crore;
  beforeAll(async () => {
    crore = await open('sqlite::memory:');
  });
  afterAll(() => crore.close());
  const ask = (handler: (request: Request) => Promise<Response>, path: string, init?: RequestInit) =>
    handler(new Request(`http://app.example${path}`, init));

  it('asks the application what a request may do', async () => {
    const rights: Record<string, 'read' | 'write'> = { ada: 'write', bob: 'read' };
    const who = (request: Request) => request.headers.get('user') ?? '';
    const jobs = dashboard(crore, { base: '/jobs', access: (request) => rights[who(request)], who });
    const asUser = (user: string) => ({ headers: { ...CHANGE.headers, user } });
    expect((await ask(jobs, '/jobs/api/session', asUser('eve'))).status).toBe(401);
    expect(await (await ask(jobs, '/jobs/api/session', asUser('bob'))).json()).toMatchObject({ access: 'read' });
    expect((await ask(jobs, '/jobs/api/act', { ...CHANGE, ...asUser('bob') })).status).toBe(403);
    await crore.queue('q').add(1, { id: 'a' });
    const body = JSON.stringify({ action: 'cancel', queue: 'q', ids: ['a'] });
    await ask(jobs, '/jobs/api/act', { ...CHANGE, ...asUser('ada'), body });
    expect((await crore.queue('q').get('a'))!.actions).toMatchObject([{ by: 'ada in the dashboard' }]);
    expect((await ask(jobs, '/elsewhere')).status).toBe(404);
    expect((await ask(jobs, '/jobs/api/login', CHANGE)).status).toBe(404);
    await jobs.close();
  });

  it('allows nothing if the application says anything but read or write', async () => {
    for (const said of [false, null, '', 0, true, 'admin', {}]) {
      const jobs = dashboard(crore, { access: () => said as never });
      expect((await ask(jobs, '/api/session')).status, String(said)).toBe(401);
      expect((await ask(jobs, '/api/act', CHANGE)).status, String(said)).toBe(401);
      expect(await (await ask(jobs, '/api/session')).json()).toMatchObject({ logIn: false });
    }
  });

  it('serves no path that a guard in front of it would have read differently', async () => {
    const listener = nodeListener(dashboard(crore, { base: '/jobs', access: 'write' }));
    const server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const statusOf = async (target: string) => {
      const socket = connect(port, '127.0.0.1').end(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
      let answer = '';
      for await (const part of socket) answer += part;
      return Number(/^HTTP\/1.1 (\d+)/.exec(answer)![1]);
    };
    expect(await statusOf('/jobs/api/session')).toBe(200);
    for (const target of [
      '//x/jobs/api/session',
      '/x/../jobs/api/session',
      '/x/%2e%2e/jobs/api/session',
      '/\\x/jobs/api/session',
      'http://y/jobs/api/session',
    ])
      expect(await statusOf(target), target).toBeGreaterThanOrEqual(400);
    server.close();
  });

  it('lets the application close its store at any time, also while it looks at thousands of queues', async () => {
    const own = await open('sqlite::memory:', { logger: false });
    const names = Array.from({ length: 3_000 }, (_, n) => `many-${n}`);
    await Promise.all(names.map((name) => own.queue(name).add(1)));
    const jobs = dashboard(own, { access: 'read' });
    const unhandled: unknown[] = [];
    const listener = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', listener);
    expect(await (await ask(jobs, '/api/overview')).json()).toMatchObject({ total: 3_000, counted: 50 });
    await own.close();
    // The look at all of them begins 20 ms after the answer.
    await new Promise((resolve) => setTimeout(resolve, 100));
    process.off('unhandledRejection', listener);
    expect(unhandled).toEqual([]);
    expect((await ask(jobs, '/api/overview')).status).toBeGreaterThanOrEqual(500);
  });

  it('must be told what is allowed', () => {
    expect(() => dashboard(crore, {} as never)).toThrow('dashboard: access must be one of read, write, not undefined');
    expect(() => dashboard(crore, { access: 'all' as never })).toThrow("not 'all'");
    expect(() => dashboard(crore, { access: 'read', base: 'jobs' })).toThrow("base must be a path such as '/jobs'");
    expect(() => dashboard(crore, { access: 'read', path: '/jobs' } as never)).toThrow("unknown option 'path'");
    expect(() => dashboard({} as never, { access: 'read' })).toThrow('not a connection returned by open()');
  });
});
