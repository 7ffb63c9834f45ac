// node bench/breadth.mjs [--quick]: what limits, groups and events cost, as ratios to the plain queue of the same run.
// Each variant takes its turn in every round; the figure is the median of time per job over the plain queue's.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from '../dist/index.js';
import { startRedis } from './redis-server.mjs';

const quick = process.argv.includes('--quick');
const JOBS = quick ? 5_000 : 20_000;
const ROUNDS = quick ? 3 : 7;

const VARIANTS = {
  plain: {},
  'concurrency of the queue': { pace: { concurrency: 1_000 } },
  'concurrency that binds': { pace: { concurrency: 150 } },
  'rate of the queue': { pace: { rate: { count: 1_000_000, per: '1s' } } },
  'groups, no limit': { groups: 100 },
  'concurrency per group': { groups: 100, pace: { group: { concurrency: 10 } } },
  'rate per group': { groups: 100, pace: { group: { rate: { count: 100_000, per: '1s' } } } },
  'events, somebody listens': { events: true },
};

async function turn(crore, name, { pace, groups, events }) {
  const queue = crore.queue(name);
  if (pace) await queue.setPace(pace);
  let heard = 0;
  const stream = events ? await queue.events() : undefined;
  stream?.on('done', () => {
    heard += 1;
  });
  const jobs = Array.from({ length: JOBS }, (_x, i) => ({
    payload: { n: i, text: 'x'.repeat(80) },
    ...(groups ? { group: `g${i % groups}` } : {}),
  }));
  await queue.pause();
  const beganAdd = performance.now();
  await queue.addMany(jobs);
  const added = performance.now() - beganAdd;
  let done = 0;
  const began = performance.now();
  await new Promise((resolve) => {
    queue.work(
      async () => {
        done += 1;
        if (done === JOBS) resolve();
      },
      { concurrency: 100 },
    );
    void queue.resume();
  });
  const drained = performance.now() - began;
  stream?.close();
  await queue.obliterate();
  return { added: added / JOBS, drained: drained / JOBS, heard };
}

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

async function measure(store, url) {
  const crore = await open(url, { onError: () => {} });
  const times = new Map(Object.keys(VARIANTS).map((name) => [name, { added: [], drained: [] }]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, variant] of Object.entries(VARIANTS)) {
      const taken = await turn(crore, `${name} ${round}`, variant);
      if (round === 0) continue; // the first round warms up
      times.get(name).added.push(taken.added);
      times.get(name).drained.push(taken.drained);
    }
  }
  await crore.close();
  const plain = times.get('plain');
  for (const [name, { added, drained }] of times) {
    const ratio = (mine, base) => (median(mine) / median(base)).toFixed(2);
    process.stdout.write(
      `${store.padEnd(7)} ${name.padEnd(26)} add ${ratio(added, plain.added)}x  work ${ratio(drained, plain.drained)}x\n`,
    );
  }
}

const dir = mkdtempSync(join(tmpdir(), 'crore-breadth-'));
const redis = await startRedis(dir);
try {
  await measure('redis', `redis://${redis.address.host ?? '127.0.0.1'}:${redis.address.port}`);
  await measure('sqlite', `sqlite:${join(dir, 'breadth.db')}`);
} finally {
  await redis.stop();
  rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
}
process.exit(0);
