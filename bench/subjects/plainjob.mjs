// Its queue sets WAL and synchronous=NORMAL itself; `options.synchronous` sets it again. A worker runs one job at a time, so the concurrency is the number
// of workers; they share the process, and its default poll interval of one second is shortened so that it does not
// dominate the latency.
import Database from 'better-sqlite3';
import { better, defineQueue, defineWorker, JobStatus } from 'plainjob';

const TYPE = 'bench';
const POLL_MS = 10;
const ignore = () => {};
const logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** Fails when the compiled part of better-sqlite3 is missing. */
export function probe() {
  new Database(':memory:').close();
}

export function open(place, { synchronous }) {
  const database = new Database(place.file);
  const queue = defineQueue({ connection: better(database), logger });
  if (synchronous) database.pragma(`synchronous = ${synchronous}`);
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
