import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as grpc from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../dist/index.js';
import { until } from '../support/wait.js';
import { Lakh, refused, seconds } from './support/lakh.js';
import { LIMITS, startServer, type TestServer } from './support/server.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(options: Parameters<typeof startServer>[0] = {}): Promise<TestServer> {
  const server = await startServer({ grace: 100, ...options });
  cleanups.push(() => server.close());
  return server;
}

function dial(
  address: string,
  ...rest: ConstructorParameters<typeof Lakh> extends [string, ...infer R] ? R : never
): Lakh {
  const lakh = new Lakh(address, ...rest);
  cleanups.push(() => lakh.close());
  return lakh;
}

/** The server still serves producers and workers. */
async function expectAlive(server: TestServer): Promise<void> {
  const lakh = dial(server.address);
  await lakh.work('alive', [{ id: 'x', name: 'alive' }]);
  await lakh.join('alive').got(1);
}

const frame = (bytes: Buffer, flag = 0) => {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
};

/** The status of one call with exactly these bytes. */
async function raw(
  server: TestServer,
  path: string,
  body: Buffer,
  headers: object = {},
): Promise<Record<string, string>> {
  const session = connectHttp2(`http://${server.address}`);
  cleanups.push(() => session.destroy());
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    job_names: 'q',
    ...headers,
  });
  let all = {};
  stream.on('response', (response) => Object.assign(all, response));
  stream.on('trailers', (trailers) => {
    all = { ...all, ...trailers };
  });
  stream.on('error', () => {});
  stream.resume();
  stream.end(body);
  await once(stream, 'close');
  return all as Record<string, string>;
}

describe('bad input gets a status and the server survives', () => {
  it.each([
    ['garbage', frame(Buffer.from([0xff, 0xff, 0xff, 0xff, 0x07, 0x01])), 3],
    ['a field that ends beyond the message', frame(Buffer.from([0x0a, 0x7f, 0x61])), 3],
    ['text that is not UTF-8', frame(Buffer.from([0x12, 0x02, 0xc3, 0x28])), 3],
    ['a message cut short', frame(Buffer.from([0x12, 0x01, 0x71])).subarray(0, 7), 3],
    ['a compressed message', frame(Buffer.from([0x12, 0x01, 0x71]), 1), 12],
    ['a message over the limit', Buffer.from([0, 0x7f, 0xff, 0xff, 0xff, 0x00]), 8],
  ])('%s', async (_what, body, status) => {
    const server = await serve();
    expect((await raw(server, '/lakh.Lakh/Work', body))['grpc-status']).toBe(String(status));
    const joined = await raw(server, '/lakh.Lakh/Join', body);
    if (_what !== 'a message cut short' && _what !== 'text that is not UTF-8')
      expect(joined['grpc-status']).toBe(String(status));
    await expectAlive(server);
  });

  it('unknown calls, too many names, names with NUL', async () => {
    const server = await serve();
    expect((await raw(server, '/lakh.Lakh/Nothing', Buffer.alloc(0)))['grpc-status'] ?? '12').toBe('12');
    const many = Array.from({ length: LIMITS.names + 1 }, (_x, i) => `n${i}`).join(';');
    expect((await raw(server, '/lakh.Lakh/Join', Buffer.alloc(0), { job_names: many }))['grpc-status']).toBe('3');
    const long = 'x'.repeat(600);
    expect((await raw(server, '/lakh.Lakh/Work', Buffer.alloc(0), { job_names: long }))['grpc-status']).toBe('3');
    await expectAlive(server);
  });

  it('the deadline of a caller is respected', async () => {
    const server = await serve();
    const session = connectHttp2(`http://${server.address}`);
    cleanups.push(() => session.destroy());
    const headers = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers', job_names: 'q' };
    const stream = session.request({ ...headers, ':path': '/lakh.Lakh/Join', 'grpc-timeout': '100m' });
    stream.resume();
    const [trailers] = await once(stream, 'trailers');
    expect(trailers['grpc-status']).toBe('4');
  });

  it('bytes that are not HTTP/2 close only their own connection', async () => {
    const server = await serve();
    const [host, port] = server.address.split(':');
    for (const text of [
      'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
      '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
      '\0'.repeat(4_000),
    ]) {
      const socket = connect(Number(port), host);
      socket.on('error', () => {});
      socket.write(text);
      socket.resume();
      await once(socket, 'close');
    }
    await expectAlive(server);
  });

  it('thousands of streams and a flood of resets', async () => {
    const server = await serve({ limits: { ...LIMITS, streams: 100 } });
    const session = connectHttp2(`http://${server.address}`);
    cleanups.push(() => session.destroy());
    session.on('error', () => {});
    const headers = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers', job_names: 'q' };
    for (let i = 0; i < 3_000 && !session.destroyed && !session.closed; i++) {
      const stream = session.request({ ...headers, ':path': '/lakh.Lakh/Join' });
      stream.on('error', () => {});
      stream.close(8);
      if (i % 200 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await expectAlive(server);
    session.destroy();
    await until('the workers to be gone', async () => (await server.store.workers('q')).length === 0);
  });

  it('a worker that does not read costs other workers nothing, and the server no memory', async () => {
    const server = await serve();
    const lakh = dial(server.address);
    const session = connectHttp2(`http://${server.address}`);
    cleanups.push(() => session.destroy());
    const stream = session.request({
      ':method': 'POST',
      ':path': '/lakh.Lakh/Join',
      'content-type': 'application/grpc',
      te: 'trailers',
      job_names: 'q',
    });
    stream.on('error', () => {});
    await once(stream, 'response');
    stream.pause();
    const args = ['x'.repeat(1_000)];
    const jobs = Array.from({ length: 4_000 }, (_x, i) => ({ id: `j${i}`, name: 'q', args }));
    const reader = lakh.join('q');
    await reader.joined();
    await lakh.work('q', jobs);
    // What the worker that does not read was sent before its window was full stays with it; the reader gets the rest.
    await until('the rest to arrive', async () => {
      const { ready, active } = await server.store.count('q');
      return ready === 0 && reader.jobs.length > 2_000 && active < 1_600;
    });
    stream.close();
    await until(
      'what it never received to be given to the other',
      async () => (await server.store.count('q')).active === 0,
    );
  });

  it('a client that disappears without closing its connection is noticed', async () => {
    const server = await serve({ keepalive: { every: 100, timeout: 100 } });
    const [host, port] = server.address.split(':');
    // It opens a connection and then never answers anything, not even pings.
    const socket = connect(Number(port), host);
    cleanups.push(() => socket.destroy());
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
    socket.resume();
    await once(socket, 'close');
    expect(server.logs.some(({ text }) => text.includes('did not answer'))).toBe(true);
  });
});

describe('access control', () => {
  const dir = mkdtempSync(join(tmpdir(), 'crore-tls-'));
  const file = (name: string) => join(dir, name);
  const read = (name: string) => readFileSync(file(name));

  beforeAll(() => {
    const openssl = (...args: string[]) => {
      const { status, stderr } = spawnSync('openssl', args, { cwd: dir, encoding: 'utf8' });
      if (status !== 0) throw new Error(stderr);
    };
    openssl(
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=test CA',
      '-keyout',
      'ca.key',
      '-out',
      'ca.pem',
    );
    writeFileSync(file('san'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
    for (const name of ['server', 'client']) {
      openssl(
        'req',
        '-newkey',
        'rsa:2048',
        '-nodes',
        '-subj',
        `/CN=${name}`,
        '-keyout',
        `${name}.key`,
        '-out',
        `${name}.csr`,
      );
      openssl(
        'x509',
        '-req',
        '-in',
        `${name}.csr`,
        '-CA',
        'ca.pem',
        '-CAkey',
        'ca.key',
        '-CAcreateserial',
        '-days',
        '2',
        '-extfile',
        'san',
        '-out',
        `${name}.pem`,
      );
    }
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  it('TLS: serves gRPC, HTTP/JSON and the library; plain text is refused', async () => {
    const server = await serve({ tls: { cert: read('server.pem'), key: read('server.key') } });
    const credentials = grpc.credentials.createSsl(read('ca.pem'));
    await dial(server.address.replace('127.0.0.1', 'localhost'), credentials).work('q', [{ id: 'a', name: 'q' }]);
    const crore = await open(`grpcs://${server.address}?ca=${file('ca.pem')}`, { onError: () => {} });
    expect(await crore.queue('q').count()).toMatchObject({ ready: 1 });
    await crore.close();
    const plain = await refused(dial(server.address).work('q', [{ name: 'q' }]));
    expect(plain.code).toBe(grpc.status.UNAVAILABLE);
    await expect(open(`grpc://${server.address}`, { timeout: 500 })).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
    });
    expect(JSON.stringify(server.logs)).not.toContain('PRIVATE KEY');
  });

  it('mTLS: accepts only clients with a certificate of the authority', async () => {
    const tls = {
      cert: read('server.pem'),
      key: read('server.key'),
      ca: read('ca.pem'),
      requestCert: true,
      rejectUnauthorized: true,
    };
    const server = await serve({ tls });
    const address = server.address.replace('127.0.0.1', 'localhost');
    const known = grpc.credentials.createSsl(read('ca.pem'), read('client.key'), read('client.pem'));
    await dial(address, known).work('q', [{ name: 'q' }]);
    const files = `ca=${file('ca.pem')}&cert=${file('client.pem')}&key=${file('client.key')}`;
    const crore = await open(`grpcs://${server.address}?${files}`, { onError: () => {} });
    expect(await crore.queues()).toEqual(['q']);
    await crore.close();
    const stranger = await refused(
      dial(address, grpc.credentials.createSsl(read('ca.pem'))).work('q', [{ name: 'q' }]),
    );
    expect(stranger.code).toBe(grpc.status.UNAVAILABLE);
  });

  it('requires a bearer token for every call except health checks', async () => {
    const server = await serve({ tokens: { write: 'secret-word' } });
    const right = dial(server.address, undefined, {}, 'secret-word');
    await right.work('q', [{ id: 'a', name: 'q', reservation_time: seconds(60) }]);
    for (const token of [undefined, 'wrong', 'secret-wor']) {
      const lakh = dial(server.address, undefined, {}, token);
      expect((await refused(lakh.work('q', [{ name: 'q' }]))).code).toBe(grpc.status.UNAUTHENTICATED);
      expect(await lakh.join('q').ended()).toMatchObject({ code: grpc.status.UNAUTHENTICATED });
      expect((await refused(lakh.dead())).code).toBe(grpc.status.UNAUTHENTICATED);
    }
    const health = await raw(server, '/grpc.health.v1.Health/Check', frame(Buffer.alloc(0)));
    expect(health['grpc-status']).toBe('0');
    const post = (authorization: string) =>
      fetch(`${server.http}/crore.v1.Crore/Queues`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization },
        body: '{}',
      });
    expect((await post('Bearer wrong')).status).toBe(401);
    expect(await (await post('Bearer secret-word')).json()).toEqual({ queues: ['q'] });
    const crore = await open(`grpc://:secret-word@${server.address}`, { onError: () => {} });
    expect(await crore.queues()).toEqual(['q']);
    await crore.close();
    const refusal = await open(`grpc://:nope-nope@${server.address}`).catch((error) => error);
    expect(refusal.code).toBe('BAD_URL');
    expect(refusal.message).not.toContain('nope-nope');
    expect(JSON.stringify(server.logs)).not.toContain('secret-word');
  });
});
