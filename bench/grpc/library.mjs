// Jobs a second through a server with a client that costs next to nothing, and in process on the same store.
import { once } from 'node:events';
import { open } from '../../dist/index.js';
import { startServer, until } from './server-process.mjs';
import { call, count, dial, framedJobs, pour, reportOf } from './wire.mjs';

const RESERVATION = 600_000;

/** Accepted, worked and reported; and the memory of the server. */
export async function throughServer(url, jobs) {
  const server = await startServer('store', url);
  const session = dial(server.port);
  const frames = framedJobs(jobs, 'bench', { reservation: RESERVATION });
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
  await pour(work.stream, frames);
  work.stream.end();
  if ((await work.status) !== '0') throw new Error('the jobs were refused');
  await until(() => state.seen >= jobs);
  stream.end();
  await once(stream, 'close');
  const rate = (jobs * 1_000) / (performance.now() - startedAt);
  const { rss } = await server.ask();
  session.destroy();
  await server.stop();
  return { rate, rss };
}

export async function inProcess(url, jobs) {
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
  for (let i = 0; i < jobs; i += 1_000) {
    adding.push(
      queue.addMany(
        Array.from({ length: 1_000 }, (_x, k) => ({ payload: ['user@example.org', '4711'], id: `job-${i + k}` })),
      ),
    );
    if (adding.length === 4) await adding.shift();
  }
  await Promise.all(adding);
  await until(() => seen >= jobs);
  await worker.close();
  const rate = (jobs * 1_000) / (performance.now() - startedAt);
  await crore.close();
  return rate;
}
