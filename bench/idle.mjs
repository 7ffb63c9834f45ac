// node bench/idle.mjs [--quick] [--store redis|sqlite] [--json]: the CPU time of a process that works on empty queues, and of its Redis server, in percent of a core.
// Linux only: the figures come from /proc.
import { fork } from 'node:child_process';
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
/** What is done at the beginning is over by then: the first polls follow each other faster than later ones. */
const SETTLE_MS = quick ? 12_000 : 90_000;
const MEASURE_MS = quick ? 15_000 : 60_000;
const TICKS_PER_SECOND = 100;

/** CPU time of a process in milliseconds; the name in the second field may contain spaces. */
function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_PER_SECOND;
}

async function idle(url, queues, serverPid) {
  const worker = fork(fileURLToPath(new URL('./idle/worker.mjs', import.meta.url)), [OURS, url, String(queues)]);
  await once(worker, 'message');
  await sleep(SETTLE_MS);
  const pids = serverPid === undefined ? [worker.pid] : [worker.pid, serverPid];
  const before = pids.map(cpuMs);
  const began = performance.now();
  await sleep(MEASURE_MS);
  const elapsed = performance.now() - began;
  const [own, server] = pids.map((pid, i) => (100 * (cpuMs(pid) - before[i])) / elapsed);
  worker.disconnect();
  await once(worker, 'exit');
  return { own, server };
}

function print(store, queues, { own, server }) {
  const figures = { case: 'idle', store, queues, process: own, server };
  const redis = server === undefined ? '' : `   Redis ${server.toFixed(2)} %`;
  const text = `${store.padEnd(7)} ${String(queues).padStart(5)} empty queues: process ${own.toFixed(2)} %${redis}`;
  process.stdout.write(`${json ? JSON.stringify(figures) : text}\n`);
}

for (const store of ['redis', 'sqlite']) {
  if (process.argv.includes('--store') && wanted !== store) continue;
  for (const queues of QUEUES) {
    const dir = mkdtempSync(join(tmpdir(), 'crore-idle-'));
    const redis = store === 'redis' ? await startRedis(dir) : undefined;
    try {
      print(store, queues, await idle(redis?.address.url ?? `sqlite:${join(dir, 'idle.db')}`, queues, redis?.pid));
    } finally {
      await redis?.stop();
      rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
    }
  }
}
