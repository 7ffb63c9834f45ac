// Works on a queue whose jobs partly fail, and prints a line for each run. Arguments: URL, queue. Ends when its input ends.
import { open } from '../../../dist/index.js';

const [, , url, queue] = process.argv;
const crore = await open(url, { logger: false, onError: () => {} });
crore.queue(queue).work(
  async (job) => {
    process.stdout.write(`${job.id} ${job.attempt}\n`);
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (job.payload.fails >= job.attempt) throw new Error('as planned');
  },
  { concurrency: 20 },
);
process.stdin.on('end', () => crore.close()).resume();
