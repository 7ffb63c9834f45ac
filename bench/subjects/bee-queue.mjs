// The settings that its documentation recommends for throughput: no events, nothing kept, saveAll for bulk.
import Queue from 'bee-queue';

const LEAN = {
  getEvents: false,
  sendEvents: false,
  storeJobs: false,
  activateDelayedJobs: false,
  removeOnSuccess: true,
  removeOnFailure: true,
};

export async function open(place) {
  const redis = { host: place.host, port: place.port };
  const queue = new Queue(place.queue, { ...LEAN, redis, isWorker: false });
  await queue.ready();
  return {
    enqueueOne: ({ value }) => queue.createJob(value).save(),
    enqueueMany: (payloads) => saveAll(queue, payloads),
    work: (concurrency, onJob) => work(place.queue, redis, concurrency, onJob),
    async pending() {
      const health = await queue.checkHealth();
      return health.waiting + health.active;
    },
    close: () => queue.close(),
  };
}

async function saveAll(queue, payloads) {
  const errors = await queue.saveAll(payloads.map(({ value }) => queue.createJob(value)));
  for (const error of errors.values()) throw error;
}

async function work(name, redis, concurrency, onJob) {
  const worker = new Queue(name, { ...LEAN, redis, isWorker: true });
  await worker.ready();
  worker.process(concurrency, async (job) => onJob(job));
  return worker;
}
