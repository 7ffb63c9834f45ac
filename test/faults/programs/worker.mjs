// A worker that writes its history. It prints `ready`, and `lost CODE` for errors in the background.
// Modes: `hold` runs until its signal is aborted, `spin` blocks the event loop, `poison` aborts the process for such a payload.
import { once } from 'node:events';
import { openRecorded } from './open-recorded.mjs';

const setup = JSON.parse(process.argv[2]);
const { queue, take = 2, mode = 'work', options = {} } = setup;
const say = (...words) => process.stdout.write(`${words.join(' ')}\n`);
const { crore, recorder } = await openRecorded(setup);

let runs = 0;
const worker = crore.queue(queue).work(
  async (job) => {
    const id = job.id ?? Buffer.from(job.payload).toString();
    runs += 1;
    const run = { verb: 'run', call: runs, id, attempt: job.attempt };
    recorder.write({ ...run, phase: 'invoke' });
    job.signal.addEventListener('abort', () => recorder.write({ ...run, phase: 'note' }));
    await work(job);
    recorder.write({ ...run, phase: 'ok' });
    return process.pid;
  },
  { onError: (error) => say('lost', error.code ?? error.message), ...options },
);
await worker.ready();
say('ready');
process.on('SIGTERM', async () => {
  await crore.close();
  process.exit(0);
});

async function work(job) {
  if (mode === 'poison' && job.payload === 'poison') process.abort();
  if (mode === 'spin') return spin(take);
  if (mode === 'hold') {
    say('holds', job.id);
    return job.signal.aborted ? undefined : once(job.signal, 'abort');
  }
  // a handler that listens to its signal, as one should
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, take);
    job.signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function spin(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
