// A worker in its own process. It prints one line per event: `ready`, `start ID ATTEMPT`, `end ID`, `aborted ID`.
// The modes `spin`, `poison` and `hold` affect only jobs with that payload; `hold` runs until its signal is aborted.
import { once } from 'node:events';
import { open } from '../../../dist/index.js';

const { url, queue, take = 5, mode = 'work', options = {} } = JSON.parse(process.argv[2]);
const say = (...words) => process.stdout.write(`${words.join(' ')}\n`);
const quiet = () => {};

const crore = await open(url, { onError: quiet, timeout: 5_000 });
const worker = crore.queue(queue).work(
  async (job) => {
    const name = job.id ?? Buffer.from(job.payload).toString();
    say('start', name, job.attempt);
    job.signal.addEventListener('abort', () => say('aborted', name));
    if (mode === 'abort' || (mode === 'poison' && job.payload === 'poison')) process.abort();
    if (mode === 'spin' && job.payload === 'spin') spin(take);
    else if (mode === 'hold' && job.payload === 'hold') await once(job.signal, 'abort');
    else await new Promise((resolve) => setTimeout(resolve, take));
    say('end', name);
    return process.pid;
  },
  { onError: quiet, ...options },
);
await worker.ready();
say('ready');
process.on('SIGTERM', async () => {
  await crore.close();
  process.exit(0);
});

function spin(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
