// A small disk that a queue fills until it is refused, and that gets room again. What happened is printed as one line of JSON.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from '../../../dist/index.js';

const { dir } = JSON.parse(process.argv[2]);
const ballast = join(dir, 'ballast');
writeFileSync(ballast, Buffer.alloc(1_500_000));

const crore = await open(`sqlite:${join(dir, 'crore.db')}`, { onError: () => {} });
const queue = crore.queue('full');
const keep = { count: 100_000 };
const accepted = [];
const refused = [];
const add = (id, payload) =>
  queue.add(payload, { id, keep }).then(
    () => accepted.push(id),
    (error) => refused.push({ id, code: error.code, message: error.message }),
  );

for (let i = 0; refused.length === 0; i++) await add(`one-${i}`, 'x'.repeat(3_000));
// what shares a turn shares a commit; and more than the page cache holds
await Promise.all([0, 1, 2, 3].map((i) => add(`shared-${i}`, 'x'.repeat(40_000))));
await Promise.all([0, 1, 2].map((i) => add(`large-${i}`, 'x'.repeat(900_000))));

const handled = new Set();
const complaints = new Set();
queue.work(async (job) => void handled.add(job.id), {
  concurrency: 10,
  lease: 2_000,
  beat: 500,
  sweep: 200,
  onError: (error) => void complaints.add(error.code),
});
const until = async (what, probe) => {
  for (let tries = 0; !(await probe()); tries++) {
    if (tries > 1_000) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
await until('a complaint', () => complaints.size > 0);
const full = { counts: await queue.count(), jobs: await listed() };

rmSync(ballast);
await until('an add to be accepted', async () => {
  await add('after', 'x');
  return accepted.includes('after');
});
await until('all of them done', async () => (await queue.count()).done === accepted.length);
const lost = accepted.filter((id) => !handled.has(id));
console.log(JSON.stringify({ accepted, refused, full, complaints: [...complaints], lost }));
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
