// A small disk that a queue fills until it is refused, and that gets room again. What happened is printed as one line of JSON.
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

// a worker that has a job in hand while the disk fills, and reports when it is full
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
await until('the job to run', () => runs.held === 1);

for (let i = 0; refused.length === 0; i++) await add(`one-${i}`, 'x'.repeat(50_000));
// what shares a turn shares a commit; and more than the page cache holds
await Promise.all([0, 1, 2, 3].map((i) => add(`shared-${i}`, 'x'.repeat(40_000))));
await Promise.all(Array.from({ length: 40 }, (_x, i) => add(`large-${i}`, 'x'.repeat(900_000))));
letGo();
await until('a complaint', () => complaints.size > 0);
const seen = { counts: await queue.count(), jobs: await listed(), complaints: [...complaints] };

// longer than the worker's lease, and than it tries to report: it has to come back by itself
await new Promise((resolve) => setTimeout(resolve, stay));
rmSync(ballast);
await until('an add to be accepted', async () => {
  await add('after', 'x');
  return accepted.includes('after');
});
await until('all of them done', async () => (await queue.count()).done === accepted.length);
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
