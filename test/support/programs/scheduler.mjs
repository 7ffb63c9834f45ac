// A process that puts the same schedule as others and works on its queue. It prints `run ID TICK` for each job.
import { open } from '../../../dist/index.js';

const { url, queue, name, every } = JSON.parse(process.argv[2]);
const crore = await open(url, { onError: () => {} });
const worker = crore.queue(queue).work(
  async (job) => {
    process.stdout.write(`run ${job.id}\n`);
  },
  { onError: () => {} },
);
await worker.ready();
await crore.schedule(name, every, { queue, payload: 'tick', keep: { count: 0 } });
process.stdout.write('ready\n');
