// A Worqr worker in its own process. Modes: `hold` takes some tasks and keeps them; `work` finishes what it takes.
// It prints one line per event: `ready`, `held TASK`, `done TASK`, `lost CODE`; a line on stdin finishes what it holds
// and prints `finished TASK` or `refused TASK CODE`.
import { createInterface } from 'node:readline';
import { Worqr } from '../../../dist/worqr/index.js';

const { url, queue, mode = 'hold', take = 1, options = {} } = JSON.parse(process.argv[2]);
const say = (...words) => process.stdout.write(`${words.join(' ')}\n`);
const worqr = new Worqr(url, options);
const held = [];
let working = 0;
/** It has been told to finish: news of work that comes late must not make it take more. */
let over = false;

async function work() {
  const task = await worqr.dequeue(queue);
  if (!task) return;
  await worqr.finishProcess(task.id);
  say('done', task.task);
  await work();
}

async function hold() {
  while (!over && held.length + working < take) {
    working += 1;
    const task = await worqr.dequeue(queue).finally(() => {
      working -= 1;
    });
    if (!task) return;
    held.push(task);
    say('held', task.task);
  }
}

async function finish() {
  over = true;
  for (const { id, task } of held.splice(0)) {
    await worqr.finishProcess(id).then(
      () => say('finished', task),
      (error) => say('refused', task, error.code),
    );
  }
  say('tried');
}

worqr.on('error', (error) => say('lost', error.code));
worqr.on(queue, (type) => {
  if (type === 'work') (mode === 'work' ? work() : hold()).catch((error) => say('error', error.code));
});
createInterface({ input: process.stdin }).on('line', finish);
await worqr.startWorker();
await worqr.startWork(queue);
say('ready');
