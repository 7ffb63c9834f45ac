import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../dist/index.js';
import { openStore } from '../../dist/store/open.js';
import { until } from '../support/wait.js';
import { Lakh } from './support/lakh.js';
import { ServeProcess } from './support/process.js';
import { LIMITS, startServer, type TestServer } from './support/server.js';
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  HEADERS,
  job,
  message,
  PREFACE,
  requestHeaders,
  SETTINGS,
  Wire,
} from './support/wire.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(options: Parameters<typeof startServer>[0] = {}): Promise<TestServer> {
  const server = await startServer({ grace: 100, ...options });
  cleanups.push(() => server.close());
  return server;
}

function dial(address: string): Socket {
  const cut = address.lastIndexOf(':');
  const socket = connect(Number(address.slice(cut + 1)), address.slice(0, cut).replace(/[[\]]/g, ''));
  cleanups.push(() => socket.destroy());
  socket.on('error', () => {});
  return socket;
}

/** Sends exactly these bytes; returns what was received until the server closed or a short time passed. */
async function say(address: string, bytes: string | Uint8Array, within = 2_000): Promise<string> {
  const socket = dial(address);
  let heard = '';
  socket.on('data', (chunk) => {
    heard += chunk.toString('latin1');
  });
  socket.write(bytes);
  const late = setTimeout(() => socket.destroy(), within);
  await once(socket, 'close');
  clearTimeout(late);
  return heard;
}

/** One HTTP/2 call with these headers; returns its status, or what happened to the connection. */
async function call(address: string, headers: Record<string, string | string[]>): Promise<Record<string, unknown>> {
  const session = connectHttp2(`http://${address}`);
  cleanups.push(() => session.destroy());
  session.on('error', () => {});
  const stream = session.request({ ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers', ...headers });
  const all: Record<string, unknown> = {};
  stream.on('response', (response) => Object.assign(all, response));
  stream.on('trailers', (trailers) => Object.assign(all, trailers));
  stream.on('error', () => {});
  stream.resume();
  stream.end(Buffer.alloc(5));
  await new Promise((resolve) => stream.once('close', resolve));
  session.destroy();
  return all;
}

describe('a server with hostile clients', () => {
  const dir = mkdtempSync(join(tmpdir(), 'crore-hostile-'));
  let server: ServeProcess;
  const web = () => server.http.replace('http://', '');

  beforeAll(async () => {
    const args = ['--addr', '127.0.0.1:0', '--http', '127.0.0.1:0', '--log-level', 'error', '--token', 'secret'];
    server = await ServeProcess.start(args, { cwd: dir });
  });
  afterAll(async () => {
    await server.end();
    rmSync(dir, { recursive: true, force: true });
  });
  afterEach(async () => {
    expect(server.running, server.errors).toBe(true);
    expect(server.errors).toBe('');
    expect((await fetch(`${server.http}/healthz`)).status).toBe(200);
  });

  it.each([
    '//',
    '//x:99999/',
    '/\\',
    '*',
    'http://[',
    '/%',
    '///crore.v1.Crore/Stats',
    '/\x7f',
    `/${'x'.repeat(9_000)}`,
  ])('HTTP: refuses the path %j', async (path) => {
    const answer = await say(web(), `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
  });

  it.each([
    'localhost:99999999',
    '[',
    'a:b:c',
    'ex%ample',
    'localhost:99999',
    '',
    ' ',
    '[::1',
    '::::',
    'x'.repeat(300),
  ])('HTTP: refuses the Host %j', async (host) => {
    const answer = await say(
      web(),
      `POST /crore.v1.Crore/Stats HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
  });

  it.each(['[', 'a:b:c', 'ex%ample', 'localhost:99999', '[::1', ':', 'x'.repeat(300), 'user@host'])(
    'gRPC: refuses the authority %j, in either header',
    async (authority) => {
      const path = '/crore.v1.Crore/Info';
      const authorization = 'Bearer secret';
      const headers = { ':path': path, ':authority': authority, authorization };
      expect((await call(server.address, headers))['grpc-status']).toBe('3');
      expect(await isRefused(server.address, path, { host: authority, authorization })).toBe(true);
      expect(await isRefused(server.address, path, { host: 'localhost', authorization })).toBe(false);
    },
  );

  it('gRPC: refuses malformed paths, and answers unknown calls with a status', async () => {
    const authorization = 'Bearer secret';
    for (const path of ['//', '//x:99999/', `/${'x'.repeat(5_000)}`])
      expect((await call(server.address, { ':path': path, authorization }))['grpc-status']).toBe('3');
    expect(await call(server.address, { ':path': '/lakh.Lakh/Nothing', authorization })).toMatchObject({
      ':status': 200,
      'grpc-status': '12',
    });
  });

  it('gRPC: serves clients that put an IPv6 address into the authority without brackets', async () => {
    const both = await ServeProcess.start(['--addr', 'localhost:0', '--http', 'off'], { cwd: dir });
    cleanups.push(() => both.end());
    const port = both.address.split(':').pop();
    const crore = await open(`grpc://[::1]:${port}`, { onError: () => {} });
    cleanups.push(() => crore.close());
    expect(await crore.queues()).toEqual([]);
  });

  it('gRPC: tells plain HTTP clients that this is the wrong port', async () => {
    const answer = await say(server.address, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('gRPC');
  });

  it('survives random requests on both ports', async () => {
    const piece = fc.oneof(
      fc.string({ maxLength: 20, unit: 'binary-ascii' }),
      fc.constantFrom('/', '//', ':', '[', ']', '%', '@', '?', '#', '..', '\\', '::1', 'localhost', '99999', 'Join'),
    );
    const text = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(''));
    const line = text.map((one) => one.replace(/[\r\n\0]/g, ''));
    const method = fc.oneof(fc.constantFrom('GET', 'POST', 'PUT', 'OPTIONS', 'CONNECT', 'TRACE', 'get'), line);
    const name = fc.oneof(
      fc.constantFrom('host', 'origin', 'authorization', 'content-type', 'grpc-timeout', 'te'),
      line,
    );
    const request = fc.record({
      method,
      path: fc.oneof(line, fc.constantFrom('/crore.v1.Crore/Stats', '/lakh.Lakh/Join', '/lakh.Lakh/Work')),
      headers: fc.array(fc.tuple(name, line), { maxLength: 6 }),
    });
    await fc.assert(
      fc.asyncProperty(request, async ({ method, path, headers }) => {
        const lines = headers.map(([one, value]) => `${one}: ${value}\r\n`).join('');
        await say(web(), `${method} ${path} HTTP/1.1\r\n${lines}\r\n`, 60);
        const literal: Record<string, string> = {};
        for (const [one, value] of headers) literal[one.toLowerCase().replace(/[^a-z-]/g, 'x') || 'x'] = value;
        const block = requestHeaders(path.slice(0, 120), literal, { method, authority: headers[0]?.[1] ?? '' });
        const bytes = [PREFACE, frame(SETTINGS, 0, 0), frame(HEADERS, END_HEADERS, 1, block), frame(DATA, 1, 1)];
        await say(server.address, Buffer.concat(bytes), 60);
        expect(server.running, server.errors).toBe(true);
      }),
      { numRuns: 60, seed: 20_260 },
    );
  });

  it('survives random bytes and frames', async () => {
    const bytes = fc.uint8Array({ maxLength: 200 });
    const anyFrame = fc
      .tuple(fc.nat(11), fc.nat(255), fc.nat(7), bytes)
      .map(([type, flags, id, payload]) => frame(type, flags, id, payload));
    const start = Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]);
    const opened = frame(HEADERS, END_HEADERS, 1, requestHeaders('/lakh.Lakh/Work', { job_names: 'q' }));
    await fc.assert(
      fc.asyncProperty(fc.array(anyFrame, { maxLength: 8 }), bytes, async (frames, junk) => {
        await say(server.address, Buffer.concat([start, opened, ...frames]), 60);
        await say(server.address, junk, 60);
        await say(web(), junk, 60);
        expect(server.running, server.errors).toBe(true);
      }),
      { numRuns: 60, seed: 20_261 },
    );
  });
});

/** A call with a `host` header, which clients put into `:authority`: whether it gets a status and nothing else. */
async function isRefused(address: string, path: string, headers: Record<string, string>): Promise<boolean> {
  const wire = await Wire.dial(address);
  cleanups.push(() => wire.socket.destroy());
  wire.socket.write(frame(HEADERS, END_HEADERS, 1, requestHeaders(path, headers, { authority: null })));
  wire.socket.write(frame(DATA, END_STREAM, 1, Buffer.alloc(5)));
  const answer = await until('a reply', () => wire.heard.find(({ type }) => type === HEADERS));
  return (answer!.flags & END_STREAM) !== 0;
}

describe('the memory of a server', () => {
  const rss = () => process.memoryUsage().rss;

  it('is bounded by the size of a message that arrives in frames of one byte', async () => {
    const server = await serve();
    const wires = await Promise.all(Array.from({ length: 3 }, () => Wire.dial(server.address)));
    const one = job('a', 'q', 'x'.repeat(300_000));
    const before = rss();
    for (const wire of wires) {
      cleanups.push(() => wire.socket.destroy());
      wire.open(1, '/lakh.Lakh/Work', { job_names: 'q' });
      for (let sent = 0; sent < one.length - 1; ) {
        const room = Math.min(wire.room(1), 10_000, one.length - 1 - sent);
        if (room === 0) await new Promise((resolve) => setImmediate(resolve));
        const bytes = Array.from({ length: room }, (_x, i) => frame(DATA, 0, 1, one.subarray(sent + i, sent + i + 1)));
        wire.spend(1, room);
        if (room > 0 && !wire.socket.write(Buffer.concat(bytes))) await once(wire.socket, 'drain');
        sent += room;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 100)); // let what is in flight arrive
    // With one buffer object for each byte, it took more than a hundred bytes of memory per byte.
    expect(rss() - before).toBeLessThan(100 * 1024 * 1024);
    for (const wire of wires) wire.data(1, one.subarray(-1), 1);
    await until('the job to be stored', async () => (await server.store.count('q')).ready === 1);
  });

  it('is bounded for partial messages, per connection and server, on both protocols and ports', async () => {
    const server = await serve({ limits: { ...LIMITS, buffered: 8 * 1024 * 1024 } });
    const head = Buffer.from([0, 0, 0x3f, 0xff, 0xff]);
    const refusedOn = async (path: string, streams: number) => {
      const wire = await Wire.dial(server.address);
      cleanups.push(() => wire.socket.destroy());
      for (let id = 1; id < 2 * streams; id += 2) {
        wire.open(id, path, { job_names: 'q' });
        await until('an open window', () => wire.room(id) >= 200_000);
        wire.data(id, Buffer.concat([head, Buffer.alloc(16_000)]));
        for (let i = 0; i < 11; i++) wire.data(id, Buffer.alloc(16_000));
      }
      return until('a call to be refused', () =>
        wire.heard.some(({ type, flags }) => type === HEADERS && flags & END_STREAM),
      );
    };
    await refusedOn('/lakh.Lakh/Work', 20);
    await refusedOn('/lakh.Lakh/Join', 20);
    await refusedOn('/crore.v1.Crore/Add', 20);
    const lakh = new Lakh(server.address);
    cleanups.push(() => lakh.close());
    await lakh.work('q', [{ id: 'x', name: 'q' }]);
  });
});

describe('unfinished requests', () => {
  it('with complete messages count against the same memory limit as partial ones', async () => {
    const server = await serve({ limits: { ...LIMITS, buffered: 8 * 1024 * 1024 } });
    const wire = await Wire.dial(server.address);
    cleanups.push(() => wire.socket.destroy());
    const size = 150_000;
    const whole = Buffer.concat([Buffer.from([0, 0, size >> 16, (size >> 8) & 255, size & 255]), Buffer.alloc(size)]);
    const isRefused = () => wire.heard.some(({ type, flags }) => type === HEADERS && flags & END_STREAM);
    for (let id = 1; id < 60 && !isRefused(); id += 2) {
      wire.open(id, '/crore.v1.Crore/Add');
      await until('an open window', () => isRefused() || wire.room(id) >= whole.length);
      for (let at = 0; at < whole.length; at += 16_000) wire.data(id, whole.subarray(at, at + 16_000));
    }
    await until('a call to be refused', isRefused);
  });

  it.each(['Add', 'Subscribe', 'Work'])('of %s no longer count when their calls are over', async (name) => {
    const server = await serve({ limits: { ...LIMITS, buffered: 256 * 1024 } });
    const session = connectHttp2(`http://${server.address}`);
    cleanups.push(() => session.destroy());
    const request = (path: string, type: string) =>
      session.request({ ':method': 'POST', ':path': `/crore.v1.Crore/${path}`, 'content-type': type, te: 'trailers' });
    const oneAndAHalf = Buffer.concat([message(Buffer.alloc(0)), Buffer.from([0, 0, 2, 0, 0]), Buffer.alloc(15_000)]);
    for (let i = 0; i < 20; i++) {
      const abandoned = request(name, 'application/grpc');
      abandoned.on('error', () => {});
      abandoned.write(oneAndAHalf);
      await new Promise<void>((resolve) => session.ping(() => resolve()));
      abandoned.close(constants.NGHTTP2_CANCEL);
      await once(abandoned, 'close');
    }
    const good = request('Add', 'application/json');
    good.end(JSON.stringify({ queue: 'q', jobs: [{ payload: 'x'.repeat(30_000) }] }));
    const [headers] = await once(good, 'response');
    expect(headers[':status']).toBe(200);
  });

  it('with compressed messages are refused before decompression', async () => {
    const server = await serve();
    const body = gzipSync(JSON.stringify({ queue: 'q', jobs: [] }));
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    const answer = await fetch(`${server.http}/crore.v1.Crore/Add`, { method: 'POST', headers, body });
    expect(answer.status).toBe(501);
    expect(await answer.text()).toContain('gzip');
  });

  it('are served one at a time on a connection that keeps asking and does not read', async () => {
    const store = await openStore('sqlite::memory:', { timeout: 10_000 });
    let running = 0;
    let most = 0;
    const list: typeof store.list = async (...args) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return store.list(...args);
    };
    const counted = new Proxy(store, {
      get: (target, key) => {
        const value = key === 'list' ? list : Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const server = await serve({ store: counted });
    const body = '{"queue":"q","state":"STATE_READY"}';
    const head = `POST /crore.v1.Crore/List HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\n`;
    const one = `${head}content-length: ${body.length}\r\n\r\n${body}`;
    const heard = await say(server.http.replace('http://', ''), one.repeat(20), 1_000);
    expect(heard.match(/HTTP\/1\.1 200/g)).toHaveLength(20);
    expect(most).toBe(1);
  });
});

describe('connections', () => {
  const open = async (address: string) => {
    const socket = dial(address);
    await once(socket, 'connect');
    return socket;
  };
  const webOf = (server: TestServer) => server.http.replace('http://', '');
  const greetings: [string, Uint8Array | string][] = [
    ['nothing', ''],
    ['half a preface', PREFACE.subarray(0, 12)],
    ['half a request', 'GET /healthz HTTP/1.1\r\nHost: local'],
  ];

  it.each(greetings)('that send %s are closed on both ports, and others are accepted', async (_what, bytes) => {
    const limits = { ...LIMITS, connections: 20 };
    const server = await serve({ limits, handshake: 300, keepalive: { every: 200, timeout: 200 } });
    for (const address of [server.address, webOf(server)]) {
      const sockets = await Promise.all(Array.from({ length: 20 }, () => open(address)));
      for (const socket of sockets) {
        if (bytes.length > 0) socket.write(bytes);
        socket.resume();
      }
      await until('the connections to be closed', () => sockets.every(({ destroyed }) => destroyed));
    }
    const lakh = new Lakh(server.address);
    cleanups.push(() => lakh.close());
    await lakh.work('q', [{ id: 'x', name: 'q' }]);
    expect((await fetch(`${server.http}/healthz`)).status).toBe(200);
  });

  it('that send an incomplete header are closed, too', async () => {
    const server = await serve({ keepalive: { every: 200, timeout: 200 } });
    const wire = await Wire.dial(server.address);
    cleanups.push(() => wire.socket.destroy());
    wire.socket.write(frame(HEADERS, 0, 1, requestHeaders('/lakh.Lakh/Work')));
    await once(wire.socket, 'close');
  });

  it('over the limit are refused on both ports', async () => {
    const server = await serve({ limits: { ...LIMITS, connections: 5 } });
    for (const address of [server.address, webOf(server)]) {
      const sockets = await Promise.all(Array.from({ length: 12 }, () => open(address)));
      for (const socket of sockets) socket.resume();
      await until('the rest to be closed', () => sockets.filter(({ destroyed }) => !destroyed).length === 5);
    }
  });
});

describe('the names of queues', () => {
  it('that were requested once are forgotten, and cost nothing any more', async () => {
    const store = await openStore('sqlite::memory:', { timeout: 10_000 });
    let counted = 0;
    const watched = new Proxy(store, {
      get: (target, key) => {
        if (key === 'count') counted += 1;
        const value = Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const server = await serve({ store: watched, sweep: 20, lease: 200 });
    for (let i = 0; i < 10; i++) {
      const wire = await Wire.dial(server.address);
      wire.open(1, '/lakh.Lakh/Join', { job_names: Array.from({ length: 50 }, (_x, k) => `n${i}-${k}`).join(';') });
      wire.open(3, '/lakh.Lakh/Work', { job_names: Array.from({ length: 50 }, (_x, k) => `w${i}-${k}`).join(';') });
      await until('the worker to be accepted', () => wire.find(HEADERS, 1));
      wire.socket.destroy();
    }
    await until('the names to be gone', async () => (await store.queues()).length === 0);
    await until('the queues to be polled no more', async () => {
      const before = counted;
      await new Promise((resolve) => setTimeout(resolve, 300)); // several intervals
      return counted === before;
    });
  });
});
