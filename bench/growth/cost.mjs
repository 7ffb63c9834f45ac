// The cost of a job from `add` to its end, with one thing larger than usual.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { OURS } from '../subjects/index.mjs';
import { within } from '../wait.mjs';

const USUAL = { backlog: 0, queues: 1, workers: 1, bytes: 97, groups: 0, kept: 0 };
const CHUNK = 1_000;
/** Bytes of payload that one measurement moves at most. */
const MOST_BYTES = 100_000_000;
const PATIENCE_MS = 600_000;

/** CPU time per job in µs, and how long it took in all; `server` tells the CPU time of the store's server so far, in µs. */
export async function cost(url, what, server, quick) {
  const size = { ...USUAL, ...what };
  const { open } = await import(pathToFileURL(resolve(OURS)).href);
  const crore = await open(url, { onError: () => {} });
  const queues = Array.from({ length: size.queues }, (_x, i) => crore.queue(`growth-${i}`));
  const most = Math.floor(MOST_BYTES / size.bytes);
  const jobs = Math.max(100, Math.min(quick ? 5_000 : Math.max(40_000, size.queues), most));
  await fill(queues[0], size);
  await pass(queues, size, Math.min(jobs, 5_000)); // the warm-up
  const before = { own: process.cpuUsage(), server: await server(), at: performance.now() };
  await within(PATIENCE_MS, 'working', pass(queues, size, jobs));
  const own = process.cpuUsage(before.own);
  const cpu = (own.user + own.system + (await server()) - before.server) / jobs;
  const ms = performance.now() - before.at;
  await crore.close();
  return { cpu, ms };
}

/** Jobs that wait during the measurement: what is added comes behind them, and what is worked is the oldest of them. */
async function fill(queue, { backlog, ...size }) {
  for (let done = 0; done < backlog; done += CHUNK) await addSome(queue, size, done, Math.min(CHUNK, backlog - done));
}

/** Adds so many jobs, spread over the queues, and works as many. */
async function pass(queues, size, jobs) {
  const each = Math.ceil(jobs / queues.length);
  for (let i = 0; i < queues.length; i += 100) {
    const some = queues.slice(i, i + 100);
    await Promise.all(some.map((queue) => addAll(queue, size, each)));
  }
  let left = each * queues.length;
  const done = Promise.withResolvers?.() ?? deferred();
  const count = () => {
    left -= 1;
    if (left === 0) done.resolve();
  };
  const concurrency = Math.max(1, Math.ceil(100 / size.workers));
  const workers = queues.flatMap((queue) =>
    Array.from({ length: size.workers }, () => queue.work(async () => count(), { concurrency })),
  );
  await done.promise;
  for (let i = 0; i < workers.length; i += 100) await Promise.all(workers.slice(i, i + 100).map((one) => one.close()));
}

async function addAll(queue, size, jobs) {
  for (let done = 0; done < jobs; done += CHUNK) await addSome(queue, size, done, Math.min(CHUNK, jobs - done));
}

function addSome(queue, { bytes, groups, kept }, from, count) {
  const payload = 'x'.repeat(bytes);
  const keep = { count: kept, for: '1h' };
  return queue.addMany(
    Array.from({ length: count }, (_x, i) => ({
      payload,
      keep: kept === 0 ? { count: 0 } : keep,
      ...(groups > 0 ? { group: `g${(from + i) % groups}` } : {}),
    })),
  );
}

function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}
