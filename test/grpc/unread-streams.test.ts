import { create, toBinary } from '@bufbuild/protobuf';
import { afterEach, describe, expect, it } from 'vitest';
import { open } from '../../dist/index.js';
import { newId } from '../../dist/job/id.js';
import { DEFAULT_SPEC } from '../../dist/job/spec.js';
import { WorkRequestSchema } from '../../dist/proto/crore/v1/crore_pb.js';
import { until } from '../support/wait.js';
import { Lakh } from './support/lakh.js';
import { startServer, type TestServer } from './support/server.js';
import { HEADERS, message, type Window, Wire } from './support/wire.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const SIZE = 20_000;

async function serve(options: Parameters<typeof startServer>[0] = {}): Promise<TestServer> {
  const server = await startServer({ grace: 100, ...options });
  cleanups.push(() => server.close());
  return server;
}

async function fill({ store }: TestServer, jobs: number): Promise<void> {
  const payload = JSON.stringify(['x'.repeat(SIZE)]);
  for (let i = 0; i < jobs; i += 500) {
    const page = Array.from({ length: 500 }, (_x, k) => ({
      id: newId(i + k),
      payload,
      priority: 0,
      spec: DEFAULT_SPEC,
    }));
    await store.add('q', page);
  }
}

/** Workers that are let in and then never read their sockets again. */
async function deafOnes(
  server: TestServer,
  count: number,
  path: string,
  { window, first }: { window?: Window; first?: Buffer } = {},
): Promise<Wire[]> {
  const all: Wire[] = [];
  for (let i = 0; i < count; i++) {
    const wire = await Wire.dial(server.address, window);
    cleanups.push(() => wire.socket.destroy());
    wire.open(1, path, { job_names: 'q' });
    if (first) wire.data(1, first);
    await until('it is let in', () => wire.find(HEADERS, 1));
    wire.socket.pause();
    all.push(wire);
  }
  return all;
}

/** What the server holds: the jobs it has taken from the store and could not hand on. */
const held = async ({ store }: TestServer) => (await store.count('q')).active * SIZE;

describe('workers that never read', () => {
  it.each([
    ['two that leave it to the sockets', 2, 'wide'],
    ['fifty that give no credit', 50, 'shut'],
  ] as const)('lakh: %s keep nothing from one that reads', async (_what, count, window) => {
    const server = await serve({ stall: 300 });
    await deafOnes(server, count, '/lakh.Lakh/Join', { window });
    const lakh = new Lakh(server.address);
    cleanups.push(() => lakh.close());
    const reader = lakh.join('q');
    await reader.joined();
    await fill(server, 1_500);
    await until('the backlog is gone', async () => {
      const { ready, active } = await server.store.count('q');
      return ready + active === 0;
    });
    // Without credit nothing reaches them; what the sockets of the others swallow has been sent.
    if (window === 'shut') expect(new Set(reader.jobs.map(({ id }) => id)).size).toBe(1_500);
  });

  it('lakh: one that begins to read gets what was written for it, and new jobs', async () => {
    const server = await serve({ stall: 200 });
    const [deaf] = await deafOnes(server, 1, '/lakh.Lakh/Join', { window: 'shut' });
    await fill(server, 500);
    await until('it has something', async () => (await held(server)) > 0);
    await until('it has nothing', async () => (await held(server)) === 0);
    expect((await server.store.count('q')).ready).toBeGreaterThan(490);
    deaf!.socket.resume();
    deaf!.giveCredit(1);
    await until('it gets new ones', async () => (await server.store.count('q')).ready === 0);
  });

  it('lakh: one that answers no ping is cut off, and what it was given goes to the others', async () => {
    const server = await serve({ keepalive: { every: 500, timeout: 1_500 } });
    await deafOnes(server, 1, '/lakh.Lakh/Join');
    await fill(server, 1_500);
    const lakh = new Lakh(server.address);
    cleanups.push(() => lakh.close());
    lakh.join('q');
    await until('all is done', async () => {
      const { ready, active } = await server.store.count('q');
      return ready + active === 0;
    });
  });

  it.each([
    ['one with all the credit there is', 1, 10_000],
    ['thirty with some', 30, 5],
  ])('crore.v1: %s', async (_what, count, credit) => {
    const server = await serve();
    await fill(server, 1_000);
    const opened = create(WorkRequestSchema, { open: { queues: ['q'], lease: { seconds: 2n } }, credit });
    const first = message(toBinary(WorkRequestSchema, opened));
    const deaf = await deafOnes(server, count, '/crore.v1.Crore/Work', { first });
    await until('they have something', async () => (await held(server)) > 0);
    const crore = await open(`grpc://${server.address}`, { onError: () => {} });
    cleanups.push(() => crore.close());
    let seen = 0;
    const handler = () => {
      seen += 1;
    };
    const worker = crore.queue('q').work(handler, { concurrency: 20 });
    cleanups.push(() => worker.close());
    await until('the others are served', () => seen > 0);
    // One message of 2 MB that waits and one on its way, each a little larger.
    const sessions = (await server.store.workers('q')).filter(({ info }) => info.includes('crore.v1'));
    for (const { holds } of sessions) expect(holds * SIZE).toBeLessThan(6_000_000);
    for (const { socket } of deaf) socket.destroy();
    await until('all is done', () => seen >= 1_000, { within: 40_000 });
    expect(await server.store.count('q')).toMatchObject({ ready: 0, dead: 0 });
  });
});
