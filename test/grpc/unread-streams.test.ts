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

/** Workers that are accepted and then never read from their sockets again. */
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
    await until('the worker to be accepted', () => wire.find(HEADERS, 1));
    wire.socket.pause();
    all.push(wire);
  }
  return all;
}

/** The bytes of jobs that the server has claimed from the store and could not send. */
const held = async ({ store }: TestServer) => (await store.count('q')).active * SIZE;

describe('workers that do not read', () => {
  it.each([
    ['two that leave it to the sockets', 2, 'wide'],
    ['fifty that give no credit', 50, 'shut'],
  ] as const)('lakh: %s take nothing from one that reads', async (_what, count, window) => {
    const server = await serve({ stall: 300 });
    await deafOnes(server, count, '/lakh.Lakh/Join', { window });
    const lakh = new Lakh(server.address);
    cleanups.push(() => lakh.close());
    const reader = lakh.join('q');
    await reader.joined();
    await fill(server, 1_500);
    await until('the backlog to be gone', async () => {
      const { ready, active } = await server.store.count('q');
      return ready + active === 0;
    });
    // Without credit they receive nothing; what the sockets of the others buffer counts as sent.
    if (window === 'shut') expect(new Set(reader.jobs.map(({ id }) => id)).size).toBe(1_500);
  });

  it('lakh: one that starts to read gets what was written for it, and new jobs', async () => {
    const server = await serve({ stall: 200 });
    const [deaf] = await deafOnes(server, 1, '/lakh.Lakh/Join', { window: 'shut' });
    await fill(server, 500);
    await until('the worker to have jobs', async () => (await held(server)) > 0);
    await until('the worker to have no jobs', async () => (await held(server)) === 0);
    expect((await server.store.count('q')).ready).toBeGreaterThan(490);
    deaf!.socket.resume();
    deaf!.giveCredit(1);
    await until('the worker to get new jobs', async () => (await server.store.count('q')).ready === 0);
  });

  it('lakh: one that answers no ping is disconnected, and its jobs go to the others', async () => {
    const server = await serve({ keepalive: { every: 500, timeout: 1_500 } });
    await deafOnes(server, 1, '/lakh.Lakh/Join');
    await fill(server, 1_500);
    const lakh = new Lakh(server.address);
    cleanups.push(() => lakh.close());
    lakh.join('q');
    await until('all jobs to be done', async () => {
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
    await until('the workers to have jobs', async () => (await held(server)) > 0);
    const crore = await open(`grpc://${server.address}`, { onError: () => {} });
    cleanups.push(() => crore.close());
    let seen = 0;
    const handler = () => {
      seen += 1;
    };
    const worker = crore.queue('q').work(handler, { concurrency: 20 });
    cleanups.push(() => worker.close());
    await until('the others to be served', () => seen > 0);
    // One message of 2 MB that waits and one being sent, each a little larger.
    const sessions = (await server.store.workers('q')).filter(({ info }) => info.includes('crore.v1'));
    for (const { holds } of sessions) expect(holds * SIZE).toBeLessThan(6_000_000);
    for (const { socket } of deaf) socket.destroy();
    await until('all jobs to be done', () => seen >= 1_000, { within: 40_000 });
    expect(await server.store.count('q')).toMatchObject({ ready: 0, dead: 0 });
  });
});
