// One turn of handlers.mjs, in its own process: drains a queue with the handler, in the place and as many at once as it
// is told, and sends the time per job and the CPU time per job of this process and of those that run the handler.
import { readdirSync, readFileSync } from 'node:fs';
import { open } from '../../dist/index.js';
import { until } from '../wait.mjs';

const TURN_MS = 120_000;
const WARM = 2_000;

const PLACES = {
  'in process': async (queue, file, count) => queue.work((await import(file)).default, { concurrency: count }),
  processes: (queue, file, count) => queue.work(file, { processes: count }),
  threads: (queue, file, count) => queue.work(file, { threads: count }),
};

async function ours({ place, url, jobs, count }, file) {
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
  const worker = await PLACES[place](queue, file, count);
  return { add, empty, jobs, pause: () => queue.pause(), resume: () => queue.resume(), close: () => worker.close() };
}

async function bullmq({ place, url, jobs, count }, file) {
  const { Queue, Worker } = await import('bullmq');
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const queue = new Queue('bench', { connection, defaultJobOptions: { removeOnComplete: true } });
  const handler = place === 'in process' ? (await import(file)).default : file;
  const worker = new Worker('bench', handler, {
    connection,
    concurrency: count,
    useWorkerThreads: place === 'threads',
  });
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
process.once('message', async (task) => {
  const file = new URL(`./${task.handler}.mjs`, import.meta.url);
  const side = await (task.subject === 'bullmq' ? bullmq : ours)(task, file);
  await drain(side, Math.min(WARM, task.jobs));
  const figures = await drain(side, task.jobs);
  await side.close();
  process.send(figures, () => process.exit(0));
});
