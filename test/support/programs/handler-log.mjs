// A handler module that writes a line for each job it starts: the job, how many others wait behind it in this process or thread, and
// where. What it does then is said by the payload.
import { once } from 'node:events';
import { appendFileSync, existsSync } from 'node:fs';
import { parentPort, threadId } from 'node:worker_threads';

let received = 0;
let started = 0;
(parentPort ?? process).on('message', (commands) => {
  received += commands.filter((command) => 'run' in command).length;
});

/** Busy until the file exists. */
function spinUntil(file) {
  while (!existsSync(file));
}

const acts = {
  ok: () => undefined,
  spin: ({ payload }) => spinUntil(payload.until),
  meet: ({ payload }) => {
    appendFileSync(payload.mine, '');
    spinUntil(payload.until);
  },
  hold: (job) => once(job.signal, 'abort').then(() => job.signal.reason.code),
  exit: () => process.exit(3),
  abort: () => process.abort(),
  eat: () => {
    const kept = [];
    for (;;) kept.push(new Array(100_000).fill(kept.length));
  },
};

export default (job) => {
  started += 1;
  appendFileSync(job.payload.log, `${job.id} ${received - started} ${process.pid}/${threadId}\n`);
  return acts[job.payload.act ?? 'ok'](job);
};
