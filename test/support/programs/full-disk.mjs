// Fills a small disk until a queue is refused, then frees space. The results are printed as one line of JSON.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from '../../../dist/index.js';

const { dir, stay = 0 } = JSON.parse(process.argv[2]);
const ballast = join(dir, 'ballast');
writeFileSync(ballast, Buffer.alloc(8_000_000));

const crore = await open(`sqlite:${join(dir, 'crore.db')}`, { onError: () => {} });
const queue = crore.queue('full');
const accepted = [];
const refused = [];
const add = (id, payload) =>
  queue.add(payload, { id, keep: { count: 100_000 } }).then(
    () => accepted.push(id),
    (error) => refused.push({ id, code: error.code, message: error.message }),
  );
const until = async (what, probe) => {
  for (let tries = 0; !(await probe()); tries++) {
    if (tries > 1_000) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

// a worker that holds a job while the disk fills, and reports it when the disk is full
let letGo;
const full = new Promise((resolve) => {
  letGo = resolve;
});
const runs = {};
const complaints = new Set();
queue.work(
  async (job) => {
    runs[job.id] = (runs[job.id] ?? 0) + 1;
    await full;
  },
  { onError: (error) => void complaints.add(error.code) },
);
await add('held', 'x');
await until('the job runs', () => runs.held === 1);

for (let i = 0; refused.length === 0; i++) await add(`one-${i}`, 'x'.repeat(50_000));
// concurrent adds share a commit; the large ones exceed the page cache
await Promise.all([0, 1, 2, 3].map((i) => add(`shared-${i}`, 'x'.repeat(40_000))));
await Promise.all(Array.from({ length: 40 }, (_x, i) => add(`large-${i}`, 'x'.repeat(900_000))));
letGo();
await until('an error is reported', () => complaints.size > 0);
const seen = { counts: await queue.count(), jobs: await listed(), complaints: [...complaints] };

// longer than the lease of the worker and its attempts to report: it has to recover by itself
await new Promise((resolve) => setTimeout(resolve, stay));
rmSync(ballast);
await until('an add is accepted', async () => {
  await add('after', 'x');
  return accepted.includes('after');
});
await until('all jobs are done', async () => (await queue.count()).done === accepted.length);
console.log(JSON.stringify({ accepted, refused, seen, runs }));
await crore.close();

async function listed() {
  const ids = [];
  for (const state of ['ready', 'active', 'done', 'scheduled', 'dead']) {
    let cursor;
    do {
      const page = await queue.list(state, { limit: 1_000, cursor });
      ids.push(...page.jobs.map(({ id }) => id));
      ({ cursor } = page);
    } while (cursor !== undefined);
  }
  return ids;
}
