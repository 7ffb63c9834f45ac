// One turn of handlers.mjs, in its own process: drains a queue with a handler that does nothing, in the place that it
// is told, and sends the time per job and the CPU time per job of this process and of those that run the handler.
import { readdirSync, readFileSync } from 'node:fs';
import { open } from '../../dist/index.js';
import { until } from '../wait.mjs';

const NOOP = new URL('./noop.mjs', import.meta.url);
const TURN_MS = 120_000;
const WARM = 2_000;

const PLACES = {
  'in process': (queue) => queue.work(async () => {}, { concurrency: 2 }),
  processes: (queue) => queue.work(NOOP, { processes: 2 }),
  threads: (queue) => queue.work(NOOP, { threads: 2 }),
};

async function ours(place, url, jobs) {
  const crore = await open(url, { onError: () => {}, logger: false });
  const queue = crore.queue('bench');
  const add = async (count) => {
    const items = Array.from({ length: count }, (_x, n) => ({ payload: { n, text: 'x'.repeat(80) } }));
    await queue.addMany(items.map((item) => ({ ...item, keep: { count: 0 } })));
  };
  const empty = async () => {
    const { ready, active } = await queue.count();
    return ready + active === 0;
  };
  const worker = PLACES[place](queue);
  return { add, empty, jobs, pause: () => queue.pause(), resume: () => queue.resume(), close: () => worker.close() };
}

async function bullmq(place, url, jobs) {
  const { Queue, Worker } = await import('bullmq');
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const queue = new Queue('bench', { connection, defaultJobOptions: { removeOnComplete: true } });
  const handler = place === 'in process' ? async () => {} : NOOP;
  const worker = new Worker('bench', handler, { connection, concurrency: 2, useWorkerThreads: place === 'threads' });
  worker.on('error', () => {});
  const add = async (count) => {
    const items = Array.from({ length: count }, (_x, n) => ({ name: 'job', data: { n, text: 'x'.repeat(80) } }));
    for (let i = 0; i < count; i += 1_000) await queue.addBulk(items.slice(i, i + 1_000));
  };
  const empty = async () => {
    const { wait, active, paused } = await queue.getJobCounts('wait', 'active', 'paused');
    return wait + active + (paused ?? 0) === 0;
  };
  return { add, empty, jobs, pause: () => queue.pause(), resume: () => queue.resume(), close: () => worker.close() };
}

/** CPU time of this process and its children in milliseconds; a tick of Linux is 10 ms. */
function cpuTime() {
  const { user, system } = process.cpuUsage();
  const tasks = readdirSync('/proc/self/task');
  const pids = tasks.flatMap((task) => readFileSync(`/proc/self/task/${task}/children`, 'utf8').split(' '));
  const times = pids.filter(Boolean).map((pid) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' '));
  return (user + system) / 1_000 + times.reduce((sum, time) => sum + (Number(time[11]) + Number(time[12])) * 10, 0);
}

async function drain({ add, empty, pause, resume }, jobs) {
  await pause();
  await add(jobs);
  const cpu = cpuTime();
  const began = performance.now();
  await resume();
  await until(TURN_MS, 'the drain', empty);
  return { ms: (performance.now() - began) / jobs, cpu: (cpuTime() - cpu) / jobs };
}

process.once('disconnect', () => process.exit(1));
process.once('message', async ({ subject, place, url, jobs }) => {
  const side = await (subject === 'bullmq' ? bullmq : ours)(place, url, jobs);
  await drain(side, Math.min(WARM, jobs));
  const figures = await drain(side, jobs);
  await side.close();
  process.send(figures, () => process.exit(0));
});
