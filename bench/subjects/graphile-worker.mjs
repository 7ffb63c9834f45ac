// As its guide to performance advises: addJobs, a local queue of five times the concurrency, completions in batches. Without a
// local queue it starts a job as soon as it is notified, which is its best case for latency.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';

const TASK = 'bench';
const POOL = 20;
const logger = new Logger(() => () => {});

export async function open(place, { latency }) {
  const pool = new pg.Pool({ connectionString: place.url, max: POOL });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  await utils.migrate();
  return {
    enqueueOne: ({ value }) => utils.addJob(TASK, value),
    enqueueMany: (payloads) => utils.addJobs(payloads.map(({ value }) => ({ identifier: TASK, payload: value }))),
    work: (concurrency, onJob) => work(pool, concurrency, onJob, latency),
    async pending() {
      const { rows } = await pool.query('select count(*)::int as n from graphile_worker._private_jobs');
      return rows[0].n;
    },
    async close() {
      await utils.release();
      await pool.end();
    },
  };
}

async function work(pgPool, concurrency, onJob, latency) {
  const batches = {
    localQueue: { size: Math.max(2, 5 * concurrency) },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
  const preset = { worker: { concurrentJobs: concurrency, ...(latency ? {} : batches) } };
  const taskList = { [TASK]: async (payload) => onJob(payload) };
  const runner = await run({ pgPool, preset, taskList, logger, noHandleSignals: true });
  return { close: () => runner.stop() };
}
