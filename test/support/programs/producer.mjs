// Adds jobs from its own process and prints each id once it is accepted.
import { open } from '../../../dist/index.js';

const { url, queue, prefix, count, each = 1 } = JSON.parse(process.argv[2]);
const crore = await open(url, { onError: () => {} });
const jobs = crore.queue(queue);
for (let i = 0; i < count; i += each) {
  const batch = Array.from({ length: Math.min(each, count - i) }, (_x, k) => `${prefix}${i + k}`);
  await jobs.addMany(batch.map((id) => ({ payload: id, id, keep: { count: 100_000 } })));
  process.stdout.write(`${batch.join('\n')}\n`);
}
await crore.close();
