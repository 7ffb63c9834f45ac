import { afterEach, describe, expect, it } from 'vitest';
import { DEFAULT_SPEC } from '../../dist/job/spec.js';
import { die } from '../../dist/job/transitions.js';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { startServer, type TestServer } from './support/server.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const MB = 1024 * 1024;
/** Bytes of jobs in one response. */
const ANSWER = 16 * MB;

/** A server whose store counts the bytes read from it. */
async function serve(): Promise<TestServer & { read: { bytes: number } }> {
  const store = await openStore('sqlite::memory:', { timeout: 10_000 });
  const read = { bytes: 0 };
  const counted = <T extends { payload: { length: number } } | undefined>(jobs: T[]) => {
    for (const job of jobs) read.bytes += job?.payload.length ?? 0;
  };
  const spies: Partial<Store> = {
    list: async (...args) => {
      const page = await store.list(...args);
      counted(page.jobs);
      return page;
    },
    get: async (...args) => {
      const jobs = await store.get(...args);
      counted(jobs);
      return jobs;
    },
  };
  const proxy = new Proxy(store, {
    get: (target, key) => {
      const value = Reflect.get(spies, key) ?? Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const server = await startServer({ store: proxy, grace: 100, sweep: 60_000 });
  cleanups.push(() => server.close());
  return Object.assign(server, { read });
}

async function fill(server: TestServer, count: number, size: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_x, i) => `j${i}`);
  const payload = JSON.stringify('x'.repeat(size));
  for (const id of ids) await server.store.add('q', [{ id, payload, priority: 0, spec: DEFAULT_SPEC }]);
  return ids;
}

interface Answer {
  jobs: { id: string }[];
  cursor?: string;
  found: { job: { id: string } }[];
  code: string;
  message: string;
}

async function ask(server: TestServer, call: string, body: object): Promise<{ status: number; body: Answer }> {
  const response = await fetch(`${server.http}/crore.v1.Crore/${call}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Answer };
}

describe('responses are limited in bytes before they are in memory', () => {
  it('List returns fewer jobs and a cursor to continue', async () => {
    const server = await serve();
    const ids = await fill(server, 40, MB);
    const seen: string[] = [];
    let cursor = '';
    do {
      server.read.bytes = 0;
      const { body } = await ask(server, 'List', { queue: 'q', state: 'STATE_READY', limit: 1_000, cursor });
      expect(body.jobs.length).toBeGreaterThan(0);
      expect(body.jobs.length).toBeLessThan(17);
      expect(server.read.bytes).toBeLessThan(3 * ANSWER);
      seen.push(...body.jobs.map(({ id }) => id));
      cursor = body.cursor ?? '';
    } while (cursor !== '');
    expect(seen).toEqual(ids);
  });

  it('List returns all requested jobs if they are small', async () => {
    const server = await serve();
    const ids = await fill(server, 450, 10);
    const { body } = await ask(server, 'List', { queue: 'q', state: 'STATE_READY', limit: 400 });
    expect(body.jobs.map(({ id }) => id)).toEqual(ids.slice(0, 400));
    const rest = await ask(server, 'List', { queue: 'q', state: 'STATE_READY', limit: 400, cursor: body.cursor });
    expect(rest.body.jobs.map(({ id }) => id)).toEqual(ids.slice(400));
    expect(rest.body.cursor ?? '').toBe('');
  });

  it('Get returns the first jobs, and the library requests the rest', async () => {
    const server = await serve();
    const ids = await fill(server, 40, MB);
    const { body } = await ask(server, 'Get', { queue: 'q', ids });
    expect(body.found.map(({ job }) => job.id)).toEqual(ids.slice(0, body.found.length));
    expect(body.found.length).toBeLessThan(17);
    expect(server.read.bytes).toBeLessThan(3 * ANSWER);
    const store = await openStore(`grpc://${server.address}`, { timeout: 20_000 });
    cleanups.push(() => store.close());
    const jobs = await store.get('q', [...ids, 'nobody']);
    expect(jobs.map((job) => job?.id)).toEqual([...ids, undefined]);
  });

  it('ListDead returns the newest jobs that fit', async () => {
    const server = await serve();
    await fill(server, 40, MB);
    const session = { queue: 'q', worker: 'w', lease: 60_000 };
    await server.store.join('q', 'w', { lease: 60_000, info: '' });
    const { entries } = await server.store.claim(session, 40);
    const settlements = entries.map(({ lease, job }) => {
      const { spec, priority } = job!;
      return { lease, outcome: die(job!, 'no'), spec, priority };
    });
    await server.store.settle('q', settlements);
    server.read.bytes = 0;
    const { body } = await ask(server, 'ListDead', { limit: 1_000 });
    expect(body.jobs.length).toBeGreaterThan(10);
    expect(body.jobs.length).toBeLessThan(17);
    expect(server.read.bytes).toBeLessThan(3 * ANSWER);
  });

  it.each([
    ['List', { queue: 'q', state: 'STATE_READY' }],
    ['Get', { queue: 'q', ids: ['j0'] }],
  ])('%s: a job that fits in no response is named in a status', async (call, request) => {
    const server = await serve();
    await fill(server, 1, 65 * MB);
    const { status, body } = await ask(server, call, request);
    expect({ status, code: body.code }).toEqual({ status: 429, code: 'resource_exhausted' });
    expect(body.message).toContain("job 'j0' of queue 'q'");
  });
});
