// A producer of the soak. It reads `add QUEUE FROM TO` from its standard input, and prints `at N` when all jobs before N are accepted.
// An add that failed is repeated with the same ids until the store has an answer.
import { createInterface } from 'node:readline';
import { open } from '../../../../dist/index.js';
import { insist, kindOf, optionsOf } from './plan.mjs';

const { url } = JSON.parse(process.argv[2]);
const crore = await insist(() => open(url, { timeout: 5_000, onError: () => {} }));
const CHUNK = 1_000;
const AT_ONCE = 3;

const itemOf = (n) => ({ payload: n, ...optionsOf(n) });

async function addChunk(queue, from, to) {
  const numbers = Array.from({ length: to - from }, (_x, i) => from + i);
  const inBatch = numbers.filter((n) => /^(batch|member)$/.test(kindOf(n)));
  const alone = numbers.filter((n) => !inBatch.includes(n)).map(itemOf);
  if (alone.length > 0) await insist(() => queue.addMany(alone));
  const [first, ...members] = inBatch;
  if (first !== undefined) await addBatch(queue, first, members);
}

async function addBatch(queue, first, members) {
  if (kindOf(first) !== 'batch')
    throw new Error(`a range must begin with a thousand: ${first} is in the middle of a batch`);
  const batch = await insist(() => queue.addBatch(first, optionsOf(first)));
  // A repetition of all this finds a batch that is closed: then its members are there.
  const closed = (error) => {
    if (error.code !== 'BATCH_CLOSED') throw error;
  };
  if (members.length > 0) await insist(() => batch.addMany(queue, members.map(itemOf)).catch(closed));
  await insist(() => batch.close());
}

for await (const line of createInterface({ input: process.stdin })) {
  const [, name, from, to] = line.split(' ');
  const queue = crore.queue(name);
  for (let n = Number(from); n < Number(to); n += CHUNK * AT_ONCE) {
    const starts = Array.from({ length: AT_ONCE }, (_x, i) => n + i * CHUNK).filter((start) => start < to);
    await Promise.all(starts.map((start) => addChunk(queue, start, Math.min(start + CHUNK, to))));
    process.stdout.write(`at ${Math.min(n + CHUNK * AT_ONCE, to)}\n`);
  }
}
await crore.close();
process.exit(0);
