import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openStore } from '../../dist/store/open.js';
import { freePort, RedisServer } from '../support/redis.js';
import { ROUNDS } from '../support/rounds.js';
import { until } from '../support/wait.js';
import { type Job, Lakh, seconds } from './support/lakh.js';
import { ServeProcess } from './support/process.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const QUICK = [
  '--http',
  'off',
  '--lease',
  '1s',
  '--sweep',
  '100ms',
  '--retry-base',
  '0',
  '--retry-jitter',
  '0',
  '--retry-cap',
  '100ms',
  '--log-level',
  'error',
];
const TOTAL = 400;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Adds every job, retrying until the server has accepted it: ids make that harmless. */
async function produce(address: string, kind: (i: number) => object): Promise<void> {
  const lakh = new Lakh(address);
  cleanups.push(() => lakh.close());
  for (let i = 0; i < TOTAL; i += 20) {
    const jobs = Array.from({ length: 20 }, (_x, k) => ({
      id: `j${i + k}`,
      name: 'q',
      args: [String(i + k)],
      ...kind(i + k),
    }));
    while (
      !(await lakh.work('q', jobs).then(
        () => true,
        () => false,
      ))
    )
      await pause(20);
    await pause(10);
  }
}

/** A worker that reconnects whenever its stream breaks, until it is stopped. */
function consume(address: string, seen: Map<string, number>): () => void {
  let over = false;
  void (async () => {
    const lakh = new Lakh(address);
    cleanups.push(() => lakh.close());
    while (!over) {
      const worker = lakh.join('q');
      worker.answer = (job: Job) => {
        seen.set(job.id, (seen.get(job.id) ?? 0) + 1);
        return 'SUCCEEDED';
      };
      while (!worker.status && !over) await pause(10);
      worker.stream.cancel();
      await pause(20);
    }
  })();
  const stop = () => {
    over = true;
  };
  cleanups.push(stop);
  return stop;
}

/** Jobs never delivered; one without reservation may be lost in transit, because it is done once it is sent. */
const undelivered = (seen: Map<string, number>) =>
  Array.from({ length: TOTAL }, (_x, i) => i).filter((i) => i % 3 !== 0 && !seen.has(`j${i}`));

/** Every third job has no reservation: it is done as soon as it is sent. */
const mixed = (i: number) => (i % 3 === 0 ? {} : { reservation_time: seconds(1) });

/** Waits until the store counts every job as done, and none in any other state. */
async function expectAllDone(url: string): Promise<void> {
  const store = await openStore(url, { timeout: 10_000 });
  cleanups.push(() => store.close());
  const isDone = async () => (await store.count('q')).done === TOTAL;
  await until('all jobs to be done', isDone, { within: 60_000, every: 100 });
  expect(await store.count('q')).toMatchObject({ ready: 0, active: 0, scheduled: 0, dead: 0, done: TOTAL });
}

describe('SIGKILL', ROUNDS, () => {
  it('of the server under load: after restarts every job is accounted for and was delivered', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'crore-kill-'));
    cleanups.push(() => rmSync(dir, { recursive: true, force: true }));
    const url = `sqlite:${join(dir, 'crore.db')}`;
    const port = await freePort();
    const start = () => ServeProcess.start(['--addr', `127.0.0.1:${port}`, '--store', url, ...QUICK]);
    let server = await start();
    cleanups.push(() => server.end());
    const seen = new Map<string, number>();
    const stop = consume(`127.0.0.1:${port}`, seen);
    const producing = produce(`127.0.0.1:${port}`, mixed);
    for (const count of [40, 150, 280]) {
      await until(`${count} deliveries`, () => seen.size >= count, { within: 60_000 });
      await server.end('SIGKILL');
      server = await start();
    }
    await producing;
    await expectAllDone(url);
    stop();
    expect(undelivered(seen)).toEqual([]);
  }, 120_000);

  it('of either of two servers on one Redis loses nothing', async () => {
    const redis = await RedisServer.start();
    cleanups.push(() => redis.stop());
    const ports = [await freePort(), await freePort()];
    const start = (i: number) =>
      ServeProcess.start(['--addr', `127.0.0.1:${ports[i]}`, '--store', redis.url, ...QUICK]);
    const servers = [await start(0), await start(1)];
    cleanups.push(() => Promise.all(servers.map((server) => server.end())));
    const seen = new Map<string, number>();
    const stop = consume(`127.0.0.1:${ports[1]}`, seen);
    const producing = produce(`127.0.0.1:${ports[0]}`, mixed);
    for (const [i, count] of [60, 160, 260].entries()) {
      await until(`${count} deliveries`, () => seen.size >= count, { within: 60_000 });
      await servers[(i + 1) % 2]!.end('SIGKILL');
      servers[(i + 1) % 2] = await start((i + 1) % 2);
    }
    await producing;
    await expectAllDone(redis.url);
    stop();
    expect(undelivered(seen)).toEqual([]);
  }, 120_000);
});
