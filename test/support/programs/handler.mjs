// A handler module: what it does is said by the payload.
import { once } from 'node:events';
import { threadId } from 'node:worker_threads';
import { Fatal } from '../../../dist/errors.js';

/** Where this handler runs. */
const place = `${process.pid}/${threadId}`;
let runs = 0;

const acts = {
  place: () => place,
  count: () => ++runs,
  job: ({ id, attempt, maxAttempts, crashes, headers, token, queue, isTask, payload }) => {
    return { id, attempt, maxAttempts, crashes, headers, token, queue, isTask, payload };
  },
  bytes: () => new Uint8Array([0, 255, 10]),
  unwritable: () => 1n,
  throw: () => explode(),
  fatal: () => {
    throw new Fatal('never again');
  },
  string: () => {
    throw 'a string';
  },
  snooze: (job) => (job.headers.again ? 'slept' : job.snooze('1h')),
  release: (job) => job.release(),
  notes: async (job) => {
    await Promise.all(Array.from({ length: 100 }, (_x, i) => job.log(`line ${i}`)));
    await job.progress({ percent: 40 });
    void job.log('the last line');
  },
  family: async (job) => {
    const children = await job.children();
    if (children.length > 0) return { children: children.map(({ result }) => result), needs: await job.needs() };
    await job.addChildren([{ payload: 'place' }, { payload: 'bytes' }]);
    return job.waitForChildren();
  },
  batch: (job) => job.batch(),
  badChild: (job) => job.addChildren([{ queue: '', payload: 1 }]).catch(({ code, message }) => [code, message]),
  badProgress: (job) => job.progress(undefined),
  late: async (job) => {
    setTimeout(() => job.log('too late').catch(({ code }) => process.stdout.write(`${code}\n`)), 5);
  },
  chat: () => {
    (process.send ?? (() => {})).call(process, 'ready');
    return 'heard nothing';
  },
  hold: async (job) => {
    await job.progress(place);
    await once(job.signal, 'abort');
    if (job.headers.after === 'throw') throw job.signal.reason;
    return job.signal.reason.code;
  },
  spin: async (job) => {
    await job.progress(place);
    for (;;);
  },
  stubborn: async (job) => {
    await job.progress(place);
    await new Promise(() => setInterval(() => {}, 1_000));
  },
  exit: async () => {
    process.stderr.write('last words\n');
    await new Promise((resolve) => setTimeout(resolve, 20)); // a pipe is written in the background
    process.exit(3);
  },
  abort: () => process.abort(),
  uncaught: () => {
    setTimeout(() => {
      throw new RangeError('nobody catches this');
    });
    return new Promise(() => {});
  },
  eat: () => {
    const kept = [];
    for (;;) kept.push(new Array(100_000).fill(kept.length));
  },
  exitLater: () => {
    setTimeout(() => process.exit(5));
    return place;
  },
};

function explode() {
  const cause = Object.assign(new Error('no answer'), { code: 'ECONNREFUSED' });
  throw Object.assign(new RangeError('out of range\nin two lines', { cause }), { status: 503 });
}

export default (job) => {
  const act = Buffer.isBuffer(job.payload) ? String(job.payload) : (job.payload.act ?? job.payload);
  return acts[act](job);
};
