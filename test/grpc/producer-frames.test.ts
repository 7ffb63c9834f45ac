import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { CALL_WINDOW } from '../../dist/grpc/http2/keepalive.js';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { deferred, until } from '../support/wait.js';
import { startServer } from './support/server.js';
import {
  DATA,
  END_STREAM,
  frame,
  GOAWAY,
  HEADERS,
  job,
  PADDED,
  RST_STREAM,
  requestHeaders,
  Wire,
} from './support/wire.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const FLOW_CONTROL_ERROR = 3;
/** How many bytes of a producer may be on their way into the store before reading pauses. */
const MOST_BYTES = 8 * 1024 * 1024;

async function serve(options: Parameters<typeof startServer>[0] = {}) {
  const server = await startServer({ grace: 100, ...options });
  cleanups.push(() => server.close());
  const wire = await Wire.dial(server.address);
  cleanups.push(() => wire.socket.destroy());
  wire.open(1, '/lakh.Lakh/Work', { job_names: 'q' });
  return { server, wire };
}

/** A store that accepts jobs only when told to. */
async function gated() {
  const store = await openStore('sqlite::memory:', { timeout: 60_000 });
  const gate = deferred();
  const add: Store['add'] = (...args) => gate.promise.then(() => store.add(...args));
  const proxy = new Proxy(store, {
    get: (target, key) => {
      const value = key === 'add' ? add : Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { store: proxy, open: () => gate.resolve() };
}

const status = (wire: Wire) => wire.heard.find(({ type, flags, id }) => type === HEADERS && id === 1 && flags & 1);

describe('a producer on the lakh protocol', () => {
  it('keeps jobs in order however the client splits them into frames', async () => {
    const { server, wire } = await serve();
    const jobs = Array.from({ length: 12 }, (_x, i) => job(`j${i}`, 'q', `é${'x'.repeat(i * 20)}`));
    const padded = (bytes: Buffer) => Buffer.concat([Buffer.from([3]), bytes, Buffer.alloc(3)]);
    wire.data(1, jobs[0]!);
    wire.data(1, Buffer.concat(jobs.slice(1, 4)));
    for (const byte of jobs[4]!) wire.data(1, Buffer.from([byte]));
    wire.data(1, Buffer.concat([jobs[5]!, jobs[6]!.subarray(0, 3)]));
    wire.data(1, padded(jobs[6]!.subarray(3)), PADDED);
    wire.data(1, Buffer.concat(jobs.slice(7, 11)));
    wire.data(1, jobs[11]!, END_STREAM);
    await until('the reply', () => status(wire));
    const { jobs: stored } = await server.store.list('q', { state: 'ready', limit: 100 });
    expect(stored.map(({ id }) => id)).toEqual(jobs.map((_job, i) => `j${i}`));
    expect(stored[11]!.payload).toBe(JSON.stringify([`é${'x'.repeat(220)}`]));
  });

  it('is held to the content length it has announced', async () => {
    const { server, wire } = await serve();
    const headers = requestHeaders('/lakh.Lakh/Work', { job_names: 'q', 'content-length': '7' });
    wire.socket.write(Buffer.concat([frame(HEADERS, 4, 3, headers), frame(DATA, END_STREAM, 3, job('a', 'q', 'x'))]));
    // Newer versions of Node close the connection.
    await until('the call to be refused', () => wire.find(RST_STREAM, 3) ?? wire.find(GOAWAY, 0));
    expect((await server.store.count('q')).ready).toBe(0);
  });

  it('that respects its window waits while the store is busy, and continues afterwards', async () => {
    const { store, open } = await gated();
    const { server, wire } = await serve({ store });
    const one = job('', 'q', 'x'.repeat(16_000));
    const total = 800;
    let sent = 0;
    const fill = () => {
      for (; sent < total && wire.room(1) >= one.length; sent++) wire.data(1, one);
    };
    wire.socket.on('data', fill);
    fill();
    // Everything the window allowed has been sent, and it is not extended: the server has more than its limit.
    await until('the window to be full', () => sent * one.length > MOST_BYTES && wire.room(1) < one.length);
    expect(sent * one.length).toBeLessThan(MOST_BYTES + 3 * CALL_WINDOW);
    open();
    await until('everything to be sent', () => sent === total);
    wire.data(1, Buffer.alloc(0), END_STREAM);
    await until('the reply', () => status(wire));
    expect((await server.store.count('q')).ready).toBe(total);
  });

  it('that exceeds its window is reset, and no other call is', async () => {
    const { store, open } = await gated();
    const { server, wire } = await serve({ store });
    wire.open(3, '/lakh.Lakh/Work', { job_names: 'r' });
    const one = job('', 'q', 'x'.repeat(16_000));
    for (let i = 0; i * one.length < MOST_BYTES + 4 * CALL_WINDOW && !wire.find(RST_STREAM, 1); i++) {
      if (!wire.socket.write(frame(DATA, 0, 1, one))) await once(wire.socket, 'drain');
    }
    const reset = await until('the call to be reset', () => wire.find(RST_STREAM, 1));
    expect(reset!.payload.readUInt32BE(0)).toBe(FLOW_CONTROL_ERROR);
    wire.data(3, job('a', 'r', ''), END_STREAM);
    open();
    await until('the other job to be stored', async () => (await server.store.count('r')).ready === 1);
  });
});
