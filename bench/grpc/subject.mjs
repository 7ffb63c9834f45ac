// One server in its own process. The parent asks it over IPC for its CPU time.
import { fileURLToPath } from 'node:url';
import { DEFAULT_SPEC } from '../../dist/job/spec.js';

/** Verbs of a store that no call of this benchmark reaches. */
const UNUSED = [
  'push',
  'recordProgress',
  'leasesOf',
  'get',
  'list',
  'workers',
  'cancel',
  'rerun',
  'update',
  'remove',
  'configure',
  'obliterate',
  'watchForEnd',
];

const [, , kind, ...rest] = process.argv;
const file = fileURLToPath(new URL('../../proto/lakh/lakh.proto', import.meta.url));

/** A store that keeps nothing, so that only the cost of the protocol remains. */
function nullStore(jobs) {
  const created = { outcome: 'created' };
  let given = 0;
  const entryOf = (i) => ({
    lease: { worker: 'bench', token: `1.1-000.${i}`, id: `job-${i}` },
    job: {
      queue: 'bench',
      id: `job-${i}`,
      state: 'active',
      payload: '["user@example.org","4711"]',
      priority: 0,
      attempt: 1,
      crashes: 0,
      createdAt: 0,
      spec: DEFAULT_SPEC,
    },
  });
  const waiting = Array.from({ length: jobs }, (_x, i) => entryOf(i));
  return {
    maxParallelClaims: 1,
    warnings: [],
    now: () => Date.now(),
    add: async (_queue, all) => all.map(() => created),
    claim: async (_session, n) => {
      const entries = waiting.slice(given, given + n);
      given += entries.length;
      return { status: 'ok', entries, more: given < jobs };
    },
    settle: async (_queue, all) => all.map(() => true),
    reportSuccess: async (_queue, ids) => ids.map(() => true),
    // A worker that joins finds all of them again.
    join: async () => {
      given = 0;
    },
    heartbeat: async (all) => all.map(() => true),
    leave: async () => {},
    sweep: async () => ({ lost: [], more: false }),
    queues: async () => [],
    schedules: { list: async () => [] },
    settings: async () => ({ paused: false, limits: {} }),
    count: async () => ({ blocked: 0, scheduled: 0, ready: 0, active: 0, done: 0, dead: 0, cancelled: 0 }),
    subscribe: () => () => {},
    close: async () => {},
    ...Object.fromEntries(
      UNUSED.map((verb) => [verb, () => Promise.reject(new Error(`the store that keeps nothing has no ${verb}`))]),
    ),
  };
}

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
  const { lakh } = grpc.loadPackageDefinition(loadSync(file, { keepCase: true }));
  const server = new grpc.Server();
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
  if (kind === 'protocol') return ours(nullStore(Number(rest[0])));
  const { openStore } = await import('../../dist/store/open.js');
  return ours(await openStore(rest[0], { timeout: 10_000 }));
}

process.once('disconnect', () => process.exit(0));
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send({ cpu: user + system, rss: process.memoryUsage().rss });
});
process.send({ port: await start() });
