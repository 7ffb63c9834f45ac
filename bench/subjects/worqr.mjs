import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sleep } from '../wait.mjs';
import { OURS } from './index.mjs';

/** The Worqr class as an application uses it: one call per task, in `concurrency` parallel loops. */
export async function open(place) {
  const { Worqr } = await import(new URL('worqr/index.js', pathToFileURL(resolve(OURS))).href);
  const worqr = new Worqr(place.url);
  const { queue } = place;
  let inHand = 0;
  const loop = async (onJob) => {
    for (;;) {
      const process = await worqr.dequeue(queue);
      if (!process) return;
      inHand += 1;
      onJob(process);
      await worqr.finishProcess(process.id);
      inHand -= 1;
    }
  };
  return {
    enqueueOne: ({ text }) => worqr.enqueue(queue, text),
    enqueueMany: (payloads) =>
      worqr.enqueue(
        queue,
        payloads.map(({ text }) => text),
      ),
    async work(concurrency, onJob) {
      await worqr.startWorker();
      await worqr.startWork(queue);
      // The heartbeat thread loads its modules now; that is part of the start-up, which is not measured.
      await sleep(1_000);
      const loops = Promise.all(Array.from({ length: concurrency }, () => loop(onJob)));
      return { close: () => loops };
    },
    pending: async () => inHand + (await worqr.countQueue(queue)),
    close: () => worqr.close(),
  };
}
