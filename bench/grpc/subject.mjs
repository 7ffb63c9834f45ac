// One server in its own process. The parent asks it over IPC for its CPU time.
import { fileURLToPath } from 'node:url';
import { forgettingStore, passingStore } from './stores.mjs';

const [, , kind, ...rest] = process.argv;
const protos = fileURLToPath(new URL('../../proto', import.meta.url));

async function ours(store) {
  const { Server } = await import('../../dist/grpc/server.js');
  const server = await Server.start({
    store,
    addresses: [{ host: '127.0.0.1', port: 0 }],
    limits: {
      message: 4_194_304,
      metadata: 65_536,
      streams: 1_000,
      connections: 1_000,
      buffered: 134_217_728,
      names: 100,
    },
    lakh: {
      maxRetry: 30,
      backoff: Object.freeze({ kind: 'quartic', base: 15_000, jitter: 30_000, cap: 2_592_000_000 }),
    },
    lease: 10_000,
    heartbeatEvery: 3_000,
    sweep: 1_000,
    maxCrashes: 3,
    keepalive: { every: 20_000, timeout: 10_000 },
    handshake: 10_000,
    stall: 5_000,
    grace: 100,
    timeout: 10_000,
    version: 'bench',
    log: { info() {}, warn() {}, error: (fields, text) => process.stderr.write(`${text} ${fields.err ?? ''}\n`) },
  });
  return server.addresses[0].port;
}

async function bareGrpcJs(jobs) {
  const grpc = await import('@grpc/grpc-js');
  const { loadSync } = await import('@grpc/proto-loader');
  const load = (file) => grpc.loadPackageDefinition(loadSync(file, { keepCase: true, includeDirs: [protos] }));
  const { lakh } = load('lakh/lakh.proto');
  const { crore } = load('crore/v1/crore.proto');
  const server = new grpc.Server();
  server.addService(crore.v1.Crore.service, {
    Add: ({ request }, done) => done(null, { results: request.jobs.map(() => ({ outcome: 1, id: 'job' })) }),
  });
  server.addService(lakh.Lakh.service, {
    Work(call, done) {
      call.on('data', () => {});
      call.on('end', () => done(null, {}));
    },
    Join(call) {
      let i = 0;
      const fill = () => {
        while (i < jobs) {
          const job = { id: `job-${i++}`, name: 'bench', args: ['user@example.org', '4711'] };
          if (!call.write(job)) {
            call.once('drain', fill);
            return;
          }
        }
        call.end();
      };
      call.on('data', () => {});
      fill();
    },
  });
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    );
  });
}

/** The minimum for any server on node:http2: it reads, or writes prebuilt messages, and parses nothing. */
async function bareHttp2(jobs) {
  const { createServer } = await import('node:http2');
  const { framedJobs } = await import('./wire.mjs');
  const ready = framedJobs(jobs, 'bench');
  const server = createServer({ settings: { initialWindowSize: 256 * 1024 } });
  server.on('session', (session) => session.setLocalWindowSize(1024 * 1024));
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    stream.on('data', () => {});
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    if (headers[':path'].endsWith('Join')) for (const buffer of ready) stream.write(buffer);
    else stream.on('end', () => stream.end());
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(server.address().port));
  });
}

async function start() {
  if (kind === 'floor') return bareHttp2(Number(rest[0]));
  if (kind === 'grpc-js') return bareGrpcJs(Number(rest[0]));
  if (kind === 'protocol') return ours(forgettingStore(Number(rest[0])));
  if (kind === 'passing') return ours(passingStore());
  const { openStore } = await import('../../dist/store/open.js');
  return ours(await openStore(rest[0], { timeout: 10_000 }));
}

process.once('disconnect', () => process.exit(0));
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send({ cpu: user + system, rss: process.memoryUsage().rss });
});
process.send({ port: await start() });
