// Its queue sets WAL and synchronous=NORMAL by itself. A worker runs one job at a time, so concurrency is that many
// workers; they share the process, and its default poll of one second is shortened so that latency is not the sleep.
import Database from 'better-sqlite3';
import { better, defineQueue, defineWorker, JobStatus } from 'plainjob';

const TYPE = 'bench';
const POLL_MS = 10;
const ignore = () => {};
const logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** Fails when the compiled half of better-sqlite3 is missing. */
export function probe() {
  new Database(':memory:').close();
}

export function open(place) {
  const queue = defineQueue({ connection: better(new Database(place.file)), logger });
  return {
    enqueueOne: ({ value }) => queue.add(TYPE, value),
    enqueueMany: (payloads) =>
      queue.addMany(
        TYPE,
        payloads.map(({ value }) => value),
      ),
    work: (concurrency, onJob) => work(queue, concurrency, onJob),
    pending: () =>
      queue.countJobs({ type: TYPE, status: JobStatus.Pending }) +
      queue.countJobs({ type: TYPE, status: JobStatus.Processing }),
    close: () => queue.close(),
  };
}

function work(queue, concurrency, onJob) {
  const options = { queue, logger, pollIntervall: POLL_MS };
  const workers = Array.from({ length: concurrency }, () => defineWorker(TYPE, async (job) => onJob(job), options));
  const runs = workers.map((worker) => worker.start());
  return {
    async close() {
      await Promise.all(workers.map((worker) => worker.stop()));
      await Promise.all(runs);
    },
  };
}
