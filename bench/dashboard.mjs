// How long the dashboard of a server takes to answer with a million jobs in one queue and ten thousand queues, on every store.
// Usage: node bench/dashboard.mjs [--quick]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { open } from '../dist/index.js';
import { startPostgres } from './postgres/server.mjs';
import { startRedis } from './redis/server.mjs';

const quick = process.argv.includes('--quick');
const [JOBS, QUEUES, ROUNDS] = quick ? [50_000, 1_000, 5] : [1_000_000, 10_000, 15];
const crore = fileURLToPath(new URL('../bin/crore', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'crore-bench-'));

async function fill(url) {
  const store = await open(url, { logger: false });
  const big = store.queue('big');
  for (let i = 0; i < JOBS; i += 10_000)
    await big.addMany(Array.from({ length: 10_000 }, (_, k) => ({ payload: { to: 'ada@example.org', n: i + k } })));
  for (let i = 0; i < QUEUES; i += 200)
    await Promise.all(
      Array.from({ length: 200 }, (_, k) => store.queue(`queue-${String(i + k).padStart(5, '0')}`).add(1)),
    );
  const [job] = (await big.list('ready', { limit: 1 })).jobs;
  await store.close();
  return job.id;
}

async function timeOf(address) {
  const began = performance.now();
  const answer = await fetch(address);
  await answer.text();
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return performance.now() - began;
}

/** CPU time of a process so far, in milliseconds: on a busy machine it says more than the time that passes. Linux only. */
function cpuOf(pid) {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    const ns = tasks.map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]));
    return ns.reduce((sum, one) => sum + one, 0) / 1e6;
  } catch {
    return Number.NaN;
  }
}

/** Node loads `fetch` with its first use: that is no time of the server. */
async function loadFetch() {
  const server = createHttpServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  for (let i = 0; i < 5; i++) await timeOf(`http://127.0.0.1:${server.address().port}/`);
  server.close();
  server.closeAllConnections();
}

async function measure(name, url) {
  const id = await fill(url);
  const args = ['serve', '--store', url, '--http', '127.0.0.1:0', '--addr', '127.0.0.1:0', '--log-level', 'error'];
  const server = spawn(process.execPath, [crore, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let base = '';
  for await (const line of createInterface(server.stdout)) {
    base = /^Dashboard: (.*)$/.exec(line)?.[1] ?? '';
    if (base !== '') break;
  }
  const views = {
    'first screen': 'overview',
    'queue of many jobs': 'queue?name=big',
    'its first page': 'jobs?queue=big&state=ready',
    'a job of it': `job?queue=big&id=${id}`,
    'a search': 'jobs?queue=big&state=ready&text=%22n%22%3A49000',
    dead: 'dead',
    workers: 'workers',
  };
  for (const [what, view] of Object.entries(views)) {
    const before = cpuOf(server.pid);
    const first = await timeOf(`${base}api/${view}`);
    const cpu = cpuOf(server.pid) - before;
    const times = [];
    for (let i = 0; i < ROUNDS; i++) times.push(await timeOf(`${base}api/${view}`));
    times.sort((a, b) => a - b);
    const median = times[Math.floor(times.length / 2)];
    console.log(
      `${name.padEnd(8)} ${what.padEnd(20)} first ${first.toFixed(0).padStart(5)} ms (CPU ${cpu.toFixed(0)} ms)   median ${median.toFixed(0).padStart(4)} ms`,
    );
  }
  const gone = once(server, 'exit');
  server.kill();
  await gone;
}

console.log(`${JOBS} jobs in one queue, ${QUEUES} queues; times as a client on the same machine sees them`);
await loadFetch();
const redis = await startRedis(dir);
const postgres = await startPostgres(dir);
const { host, port, user } = postgres.address;
try {
  await measure('sqlite', `sqlite:${join(dir, 'crore.db')}`);
  await measure('redis', redis.address.url);
  await measure('postgres', `postgres://${user}@${host}:${port}/postgres`);
} finally {
  await redis.stop();
  await postgres.stop();
  rmSync(dir, { recursive: true, force: true });
}
