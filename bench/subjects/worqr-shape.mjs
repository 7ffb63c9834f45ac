// The design of the original, reimplemented: one MULTI and one round trip per verb, three of them for the life of a
// task.
import { randomUUID } from 'node:crypto';
import { connect } from './root.mjs';

export async function open(place) {
  const client = connect(place);
  await client.ping();
  const list = `worqr_queues_${place.queue}`;
  const mine = `worqr_worker_${place.queue}`;
  const enqueue = (texts) =>
    client
      .multi()
      .lpush(list, ...texts)
      .publish(list, String(texts.length))
      .exec();
  let inHand = 0;

  async function dequeue() {
    const id = `worqr_process_${randomUUID()}`;
    const [[, task]] = await client.multi().rpoplpush(list, id).sadd(mine, id).exec();
    if (task !== null) return { id, task };
    await client.srem(mine, id);
    return null;
  }

  const finish = (id) => client.multi().del(id).srem(mine, id).exec();

  async function loop(onJob) {
    for (;;) {
      const process = await dequeue();
      if (!process) return;
      inHand += 1;
      onJob(process);
      await finish(process.id);
      inHand -= 1;
    }
  }

  return {
    enqueueOne: ({ text }) => enqueue([text]),
    enqueueMany: (payloads) => enqueue(payloads.map(({ text }) => text)),
    async work(concurrency, onJob) {
      const loops = Promise.all(Array.from({ length: concurrency }, () => loop(onJob)));
      return { close: () => loops };
    },
    pending: async () => inHand + (await client.llen(list)),
    close: () => client.quit(),
  };
}
