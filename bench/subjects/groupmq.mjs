// A group runs one job at a time. It is fastest with as many groups as handlers: with ten times as many it drains eight
// times slower, with fewer the handlers starve. Its automatic batching is on where throughput is measured and off where
// latency is, since a batch waits until it is full.
import { Queue, Worker } from 'groupmq';
import { Redis } from 'ioredis';

export async function open(place, { latency = false, concurrency = 100 }) {
  const redis = new Redis({ host: place.host, port: place.port, maxRetriesPerRequest: null });
  const autoBatch = latency ? undefined : { size: 100, maxWaitMs: 1 };
  const queue = new Queue({ redis, namespace: place.queue, autoBatch });
  let turn = 0;
  const enqueueOne = ({ value }) => queue.add({ groupId: `g${turn++ % concurrency}`, data: value });
  return {
    enqueueOne,
    enqueueMany: (payloads) => Promise.all(payloads.map(enqueueOne)),
    work: (concurrency, onJob) => work(queue, concurrency, onJob),
    pending: async () => (await queue.getWaitingCount()) + (await queue.getActiveCount()),
    async close() {
      await queue.close();
      redis.disconnect();
    },
  };
}

function work(queue, concurrency, onJob) {
  const worker = new Worker({ queue, concurrency, handler: async (job) => onJob(job) });
  worker.run().catch((error) => {
    process.stderr.write(`groupmq worker: ${error.message}\n`);
  });
  return worker;
}
