import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { open } from '../../../dist/index.js';
import { ServeProcess } from '../../grpc/support/process.js';
import { freePort } from '../../support/redis.js';
import { until } from '../../support/wait.js';
import { uncertainDuring } from '../history/attempts.js';
import { check } from '../history/checker.js';
import { inventoryOf, leftovers } from '../history/leftovers.js';
import { type Experiment, onEach } from '../support/experiment.js';
import { type Lab, pause } from '../support/lab.js';

const SERVER = { short: false };
const QUICK = ['--lease', '1s', '--sweep', '100ms', '--log-level', 'error'];

async function serve(lab: Lab, args: string[]): Promise<ServeProcess> {
  const server = await ServeProcess.start(args, { cwd: lab.dir });
  lab.onClose(() => server.end());
  return server;
}

const killedServer = onEach(['sqlite', 'redis', 'postgres'], {
  ...SERVER,
  row: 30,
  name: 'a job server killed with SIGKILL under load, clients reconnect',
  async run(lab, kind) {
    const store = await lab.store(kind);
    const port = await freePort();
    const start = () => serve(lab, ['--addr', `127.0.0.1:${port}`, '--http', 'off', '--store', store, ...QUICK]);
    let server = await start();
    const url = `grpc://127.0.0.1:${port}`;
    const producer = lab.producer({ url, count: 1_500, each: 10, pause: 20, insist: true });
    await Promise.all([lab.worker({ url, take: 20 }), lab.worker({ url, take: 20 })]);
    const kills = 6;
    const now = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;
    const cuts: [number, number][] = [];
    for (let i = 0; i < kills; i++) {
      await pause(800);
      const from = now();
      await server.end('SIGKILL');
      cuts.push([from, now()]);
      server = await start();
    }
    await until('the producer to finish', () => !producer.running, { within: 90_000 });
    await lab.drained(store);
    const events = uncertainDuring(lab.history(), cuts);
    const { violations, figures } = check(events, await lab.final(store), { allEnded: true });
    if (figures.accepted === 0) violations.push('nothing was accepted');
    return {
      figure: `${kills} kills, lost ${figures.lost} of ${figures.accepted}, run twice ${figures.doubled}`,
      violations,
    };
  },
});

const huge: Experiment = {
  ...SERVER,
  row: 26,
  name: 'a payload of 100 MB on every interface',
  store: 'server',
  async run(lab) {
    const url = lab.sqlite();
    const server = await serve(lab, ['--addr', '127.0.0.1:0', '--store', url, '--http', '127.0.0.1:0', ...QUICK]);
    const peak = () =>
      Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))![1]) / 1024;
    const before = peak();
    const payload = 'x'.repeat(100_000_000);
    const violations: string[] = [];
    const expectRefusal = async (what: string, attempt: () => Promise<unknown>) => {
      const answer = await attempt().then(
        String,
        (error: { code?: string; message: string }) => error.code ?? error.message,
      );
      if (!/^(4\d\d|PAYLOAD_TOO_LARGE|EPIPE|ECONNRESET)/.test(answer))
        violations.push(`${what}: ${answer.slice(0, 100)}`);
    };
    const direct = await open(url, { onError: () => {} });
    const remote = await open(`grpc://${server.address}`, { onError: () => {}, maxPayload: 1_000_000_000 });
    lab.onClose(() => Promise.all([direct.close(), remote.close()]));
    await expectRefusal('library', () => direct.queue('q').add(payload));
    await expectRefusal('gRPC', () => remote.queue('q').add(payload));
    await expectRefusal('HTTP', () => post(`${server.http}/crore.v1.Crore/Add`, payload));
    const grown = Math.round(peak() - before);
    if (grown > 100) violations.push(`the server grew by ${grown} MB`);
    if ((await direct.queue('q').count()).ready !== 0) violations.push('something was added');
    return { figure: `refused on 3 interfaces, the server grew by ${grown} MB`, violations };
  },
};

/** A body that is sent as fast as it is taken; resolves with the status. */
function post(url: string, payload: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const body = Buffer.from(JSON.stringify({ queue: 'q', jobs: [{ payload }] }));
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    const call = request(url, { method: 'POST', headers }, (answer) => {
      answer.resume();
      resolve(String(answer.statusCode));
    });
    call.on('error', reject);
    call.end(body);
  });
}

const manyQueues = onEach(['sqlite', 'redis', 'postgres'], {
  ...SERVER,
  row: 35,
  name: 'thousands of queues made and obliterated',
  async run(lab, kind) {
    const url = await lab.store(kind);
    const crore = await open(url, { onError: () => {} });
    lab.onClose(() => crore.close());
    const empty = await inventoryOf(url);
    const count = kind === 'redis' ? 10_000 : 2_000;
    for (let i = 0; i < count; i += 50) {
      const names = Array.from({ length: 50 }, (_x, k) => `q${i + k}`);
      await Promise.all(names.map((name) => crore.queue(name).add(1)));
      await Promise.all(names.map((name) => crore.queue(name).obliterate()));
    }
    const left = leftovers(empty, await inventoryOf(url));
    // Names and charts stay for a while; a name costs one entry of two keys, or one row.
    const keys = left.filter(
      (text) => !/registry|history|^queues:|^counters:|^sqlite_/.test(text) && !text.includes(':meta:'),
    );
    return { figure: `${count} queues, keys left ${keys.length}`, violations: keys.slice(0, 5) };
  },
});

const storeGone: Experiment = {
  ...SERVER,
  row: 39,
  name: 'the store killed and suspended under a server: its ready probe',
  store: 'server',
  async run(lab) {
    const redis = await lab.redis(['--appendonly', 'yes']);
    const server = await serve(lab, ['--addr', '127.0.0.1:0', '--store', redis.url, '--http', '127.0.0.1:0', ...QUICK]);
    const isReady = async () =>
      (await fetch(`${server.http}/readyz`, { signal: AbortSignal.timeout(5_000) })).status === 200;
    const times: Record<string, number> = {};
    const time = async (what: string, ready: boolean) => {
      const since = performance.now();
      const found = async () => (await isReady().catch(() => false)) === ready;
      await until(what, found, { every: 50 });
      times[what] = Math.round(performance.now() - since);
    };
    await time('ready', true);
    await redis.down();
    await time('noticed the kill', false);
    await redis.up();
    await time('recovered from it', true);
    process.kill(redis.pid, 'SIGSTOP');
    await time('noticed the suspension', false);
    process.kill(redis.pid, 'SIGCONT');
    await time('recovered from that', true);
    const violations = ['noticed the kill', 'noticed the suspension'].flatMap((what) =>
      times[what]! > 2_000 ? [`${what} after ${times[what]} ms`] : [],
    );
    return {
      figure: Object.entries(times)
        .map(([what, ms]) => `${what} ${ms} ms`)
        .join(', '),
      violations,
    };
  },
};

export const SERVER_FAULTS: Experiment[] = [huge, ...killedServer, ...manyQueues, storeGone];
