// Adds jobs with ids of its own until it has added `count`, and writes its history. It prints `accepted N` now and then.
// `insist`: an add that failed is tried again, with the same id, until the store has an answer.
import { openRecorded } from './open-recorded.mjs';

const setup = JSON.parse(process.argv[2]);
const { queue, prefix, count, each = 1, pause = 0, insist = false, payload = 'x' } = setup;
const { crore } = await openRecorded(setup);
const jobs = crore.queue(queue);
const keep = { count: 10_000_000 };
let accepted = 0;

async function add(ids) {
  for (;;) {
    try {
      await jobs.addMany(ids.map((id) => ({ payload, id, keep })));
      accepted += ids.length;
      return;
    } catch {
      if (!insist) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

for (let i = 0; i < count; i += each) {
  await add(Array.from({ length: Math.min(each, count - i) }, (_x, k) => `${prefix}${i + k}`));
  if (i % (each * 10) === 0) process.stdout.write(`accepted ${accepted}\n`);
  if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
}
process.stdout.write(`accepted ${accepted}\nfinished\n`);
await crore.close();
