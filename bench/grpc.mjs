// The job server compared with a bare grpc-js stream and with the library: `node bench/grpc.mjs [--quick]`.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from '../dist/index.js';
import { sendJobs } from './grpc/frames.mjs';
import { call, count, dial, framedJobs, pour, reportOf } from './grpc/wire.mjs';

const quick = process.argv.includes('--quick');
const ROUNDS = quick ? 1 : 3;
const MESSAGES = quick ? 100_000 : 300_000;
/** Both servers handle this many streams, 300,000 messages, before one is measured: by then their code is compiled. */
const WARM_UPS = quick ? 3 : 1;
const JOBS = quick ? 20_000 : 100_000;
const RESERVATION = 600_000;

async function subject(...args) {
  const child = fork(fileURLToPath(new URL('./grpc/subject.mjs', import.meta.url)), args.map(String));
  const failed = once(child, 'exit').then(() => Promise.reject(new Error(`${args[0]} ended before it listened`)));
  failed.catch(() => {});
  const [{ port }] = await Promise.race([once(child, 'message'), failed]);
  return {
    port,
    ask: async () => {
      child.send({});
      return (await once(child, 'message'))[0];
    },
    stop: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** Server CPU per message, in µs, for a stream to the server. */
async function upstream(kind) {
  const server = await subject(kind, 0);
  for (let i = 0; i < WARM_UPS; i++) await sendJobs(server.port, MESSAGES);
  const before = await server.ask();
  await sendJobs(server.port, MESSAGES);
  const after = await server.ask();
  await server.stop();
  return (after.cpu - before.cpu) / MESSAGES;
}

/** The same for a stream to the client. The whole second stream counts, because a server may be far ahead of its reader. */
async function downstream(kind) {
  const server = await subject(kind, MESSAGES);
  const session = dial(server.port);
  for (let i = 0; i < WARM_UPS; i++) await receiveJobs(session);
  const before = await server.ask();
  await receiveJobs(session);
  const after = await server.ask();
  session.destroy();
  await server.stop();
  return (after.cpu - before.cpu) / MESSAGES;
}

async function receiveJobs(session) {
  const { stream } = call(session, '/lakh.Lakh/Join', 'bench');
  const state = count(stream);
  await until(() => state.seen >= MESSAGES);
  stream.end();
  await once(stream, 'close');
}

/** Jobs per second through a server on a durable store: accepted, worked and reported. */
async function throughServer(url) {
  const server = await subject('store', url);
  const session = dial(server.port);
  const jobs = framedJobs(JOBS, 'bench', { reservation: RESERVATION });
  const { stream } = call(session, '/lakh.Lakh/Join', 'bench');
  let reports = [];
  const state = count(stream, (buffer, start) => {
    if (reports.length === 0) setImmediate(flush);
    reports.push(reportOf(buffer, start, 'bench'));
  });
  const flush = () => {
    stream.write(Buffer.concat(reports));
    reports = [];
  };
  const startedAt = performance.now();
  const work = call(session, '/lakh.Lakh/Work', 'bench');
  work.stream.resume();
  await pour(work.stream, jobs);
  work.stream.end();
  if ((await work.status) !== '0') throw new Error('the jobs were refused');
  await until(() => state.seen >= JOBS);
  stream.end();
  await once(stream, 'close');
  const rate = (JOBS * 1_000) / (performance.now() - startedAt);
  const { rss } = await server.ask();
  session.destroy();
  await server.stop();
  return { rate, rss };
}

async function inProcess(url) {
  const crore = await open(url);
  const queue = crore.queue('bench');
  let seen = 0;
  const startedAt = performance.now();
  const worker = queue.work(
    () => {
      seen += 1;
    },
    { concurrency: 100 },
  );
  const adding = [];
  for (let i = 0; i < JOBS; i += 1_000) {
    adding.push(
      queue.addMany(
        Array.from({ length: 1_000 }, (_x, k) => ({ payload: ['user@example.org', '4711'], id: `job-${i + k}` })),
      ),
    );
    if (adding.length === 4) await adding.shift();
  }
  await Promise.all(adding);
  await until(() => seen >= JOBS);
  await worker.close();
  const rate = (JOBS * 1_000) / (performance.now() - startedAt);
  await crore.close();
  return rate;
}

async function until(probe) {
  const end = performance.now() + 120_000;
  while (!probe()) {
    if (performance.now() > end) throw new Error('nothing came any more');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function median(values) {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

const figures = { up: { 'grpc-js': [], protocol: [] }, down: { 'grpc-js': [], protocol: [] }, library: [], server: [] };
let rss = 0;
for (let round = 0; round < ROUNDS; round++) {
  for (const kind of ['grpc-js', 'protocol']) {
    figures.up[kind].push(await upstream(kind));
    figures.down[kind].push(await downstream(kind));
  }
  const dir = mkdtempSync(join(tmpdir(), 'crore-grpc-'));
  figures.library.push(await inProcess(`sqlite:${join(dir, 'library.db')}`));
  const through = await throughServer(`sqlite:${join(dir, 'server.db')}`);
  figures.server.push(through.rate);
  rss = Math.max(rss, through.rss);
  rmSync(dir, { recursive: true, force: true });
}

const say = (text) => process.stdout.write(`${text}\n`);
for (const [direction, title] of [
  ['up', 'client to server'],
  ['down', 'server to client'],
]) {
  const theirs = median(figures[direction]['grpc-js']);
  const own = median(figures[direction].protocol);
  say(
    `server CPU per lakh message, ${title}: ${own.toFixed(2)} µs, bare grpc-js ${theirs.toFixed(2)} µs, ratio ${(theirs / own).toFixed(1)}x`,
  );
}
const [library, server] = [median(figures.library), median(figures.server)];
say(
  `jobs a second end to end, SQLite FULL: server ${Math.round(server)}, library in process ${Math.round(library)}, share ${((100 * server) / library).toFixed(0)} %`,
);
say(`server memory at its largest: ${Math.round(rss / 1_048_576)} MB`);
