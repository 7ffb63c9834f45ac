import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { OURS } from './index.mjs';

/** The benchmark's Redis deliberately persists nothing, and one subject does not wait for the disk; all other background errors are shown. */
function onError(error, what) {
  if (!/no persistence|synchronous is normal/.test(error.message))
    process.stderr.write(`crore: ${what}: ${error.message}\n`);
}

/** `options.verb` selects raw tasks (push), jobs with a record (add), jobs whose record is removed when they are done, or commits that do not wait for the disk. */
export async function open(place, { verb }) {
  const { open: openStore } = await import(pathToFileURL(resolve(OURS)).href);
  const crore = await openStore(`${place.url}${verb === 'add, normal' ? '?synchronous=normal' : ''}`, { onError });
  const queue = crore.queue(place.queue);
  const enqueue =
    verb === 'push' ? pushing(queue) : adding(queue, verb === 'add, forgotten' ? { keep: { count: 0 } } : {});
  return {
    ...enqueue,
    work(concurrency, onJob) {
      return queue.work(async (job) => onJob(job), { concurrency });
    },
    async pending() {
      const count = await queue.count();
      return count.ready + count.active;
    },
    close: () => crore.close(),
  };
}

function pushing(queue) {
  return {
    enqueueOne: ({ text }) => queue.push(text),
    enqueueMany: (payloads) => queue.push(payloads.map(({ text }) => text)),
  };
}

function adding(queue, options) {
  return {
    enqueueOne: ({ value }) => queue.add(value, options),
    enqueueMany: (payloads) => queue.addMany(payloads.map(({ value }) => ({ payload: value, ...options }))),
  };
}
