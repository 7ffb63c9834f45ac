import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { open } from '../../dist/index.js';
import { ALL_STORES } from '../support/stores.js';
import { until } from '../support/wait.js';

const program = fileURLToPath(new URL('../support/programs/failing-worker.mjs', import.meta.url));
const JOBS = 2_000;

describe.each(ALL_STORES)('several busy processes on one queue, on %s', (_name, fresh) => {
  it('run each attempt of a job once while others add and retry jobs all the time', async () => {
    const store = await fresh();
    const crore = await open(store.url, { logger: false });
    const queue = crore.queue('busy');
    const runs: string[] = [];
    const workers = [0, 1].map(() => {
      const child = spawn(process.execPath, [program, store.url, 'busy'], { stdio: ['pipe', 'pipe', 'inherit'] });
      let rest = '';
      child.stdout.on('data', (part) => {
        const lines = (rest + part).split('\n');
        rest = lines.pop()!;
        runs.push(...lines);
      });
      return child;
    });
    // Added one by one: every commit tells the other processes to look again.
    let next = 0;
    const producer = async () => {
      while (next < JOBS) {
        const n = next++;
        await queue.add({ fails: n % 10 === 0 ? 9 : n % 10 === 1 ? 1 : 0 }, { attempts: 2, backoff: 10 });
      }
    };
    await Promise.all(Array.from({ length: 20 }, producer));
    await until('all have ended', async () => {
      const { ready, active, scheduled } = await queue.count();
      return ready + active + scheduled === 0;
    });
    for (const worker of workers) {
      const gone = once(worker, 'exit');
      worker.stdin.end();
      await gone;
    }
    const twice = runs.filter((run, i) => runs.indexOf(run) !== i);
    expect(twice).toEqual([]);
    expect(runs).toHaveLength(JOBS * 1.2);
    await crore.close();
    await store.stop();
  });
});
