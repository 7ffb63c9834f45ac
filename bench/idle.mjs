// node bench/idle.mjs [--quick] [--store redis|sqlite] [--json]: the CPU time of a process that works on empty queues, and of its Redis server, in percent of a core; then
// that of fifty processes that share a thousand queues, of a job server, and of Redis.
// Linux only: the figures come from /proc.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startRedis } from './redis/server.mjs';
import { OURS } from './subjects/index.mjs';
import { sleep } from './wait.mjs';

const quick = process.argv.includes('--quick');
const json = process.argv.includes('--json');
const wanted = process.argv[process.argv.indexOf('--store') + 1];
const QUEUES = [1, 100, 1_000];
const PROCESSES = 50;
const QUEUES_EACH = 20;
/** What is done at the beginning is over by then: the first polls follow each other faster than later ones. */
const SETTLE_MS = quick ? 12_000 : 90_000;
const MEASURE_MS = quick ? 15_000 : 60_000;
const TICKS_PER_SECOND = 100;

/** CPU time of a process in milliseconds; the name in the second field may contain spaces. */
function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_PER_SECOND;
}

/** Percent of a core of each process while nothing happens. */
async function observe(pids) {
  await sleep(SETTLE_MS);
  const before = pids.map(cpuMs);
  const began = performance.now();
  await sleep(MEASURE_MS);
  const elapsed = performance.now() - began;
  return pids.map((pid, i) => (100 * (cpuMs(pid) - before[i])) / elapsed);
}

async function startWorker(url, queues, first = 0) {
  const args = [OURS, url, String(queues), String(first)];
  const worker = fork(fileURLToPath(new URL('./idle/worker.mjs', import.meta.url)), args);
  await once(worker, 'message');
  return worker;
}

async function stopWorker(worker) {
  const gone = once(worker, 'exit');
  worker.disconnect();
  await gone;
}

async function idle(url, queues, serverPid) {
  const worker = await startWorker(url, queues);
  const [own, server] = await observe(serverPid === undefined ? [worker.pid] : [worker.pid, serverPid]);
  await stopWorker(worker);
  return { own, server };
}

/** Many processes, each with some of the queues, and a job server. */
async function fleet({ address, pid }) {
  const command = fileURLToPath(new URL('../bin/crore', import.meta.url));
  const args = [command, 'serve', '--store', address.url, '--addr', 'localhost:0', '--http', 'localhost:0'];
  const serve = spawn(process.execPath, args, { stdio: 'ignore' });
  const workers = [];
  for (let i = 0; i < PROCESSES; i++) workers.push(await startWorker(address.url, QUEUES_EACH, i * QUEUES_EACH));
  const [server, redis, ...each] = await observe([serve.pid, pid, ...workers.map((worker) => worker.pid)]);
  await Promise.all(workers.map(stopWorker));
  const gone = once(serve, 'exit');
  serve.kill('SIGTERM');
  await gone;
  return { server, redis, mean: each.reduce((sum, one) => sum + one, 0) / each.length, most: Math.max(...each) };
}

function printFleet({ server, redis, mean, most }) {
  const figures = {
    case: 'idle fleet',
    processes: PROCESSES,
    queues: PROCESSES * QUEUES_EACH,
    server,
    redis,
    mean,
    most,
  };
  const text = `redis   ${PROCESSES} processes with ${QUEUES_EACH} of ${PROCESSES * QUEUES_EACH} empty queues each: a process ${mean.toFixed(2)} % (at most ${most.toFixed(2)} %), crore serve ${server.toFixed(2)} %, Redis ${redis.toFixed(2)} %`;
  process.stdout.write(`${json ? JSON.stringify(figures) : text}\n`);
}

function print(store, queues, { own, server }) {
  const figures = { case: 'idle', store, queues, process: own, server };
  const redis = server === undefined ? '' : `   Redis ${server.toFixed(2)} %`;
  const text = `${store.padEnd(7)} ${String(queues).padStart(5)} empty queues: process ${own.toFixed(2)} %${redis}`;
  process.stdout.write(`${json ? JSON.stringify(figures) : text}\n`);
}

async function onStore(store, measure) {
  const dir = mkdtempSync(join(tmpdir(), 'crore-idle-'));
  const redis = store === 'redis' ? await startRedis(dir) : undefined;
  try {
    await measure(redis, redis?.address.url ?? `sqlite:${join(dir, 'idle.db')}`);
  } finally {
    await redis?.stop();
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  }
}

for (const store of ['redis', 'sqlite']) {
  if (process.argv.includes('--store') && wanted !== store) continue;
  for (const queues of QUEUES) {
    await onStore(store, async (redis, url) => print(store, queues, await idle(url, queues, redis?.pid)));
  }
  if (store === 'redis') await onStore(store, async (redis) => printFleet(await fleet(redis)));
}
