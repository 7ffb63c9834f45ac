// insert for many; workers that fetch a batch as large as the concurrency and at once the next while batches are full; jobs removed by its
// maintenance. For latency it listens for notifications. Its statistics are made current after filling, without which it chooses a slow plan.
import { PgBoss } from 'pg-boss';

const QUEUE = 'bench';
const POOL = 20;
const POLL_SECONDS = 0.5;

export async function open(place, { latency }) {
  const boss = new PgBoss({
    connectionString: place.url,
    max: POOL,
    supervise: false,
    schedule: false,
    useListenNotify: latency === true,
  });
  boss.on('error', () => {});
  await boss.start();
  await boss.createQueue(QUEUE, latency ? { notify: true } : {});
  const db = boss.getDb();
  const count = async () => {
    const { rows } = await db.executeSql(`select count(*)::int as n from pgboss.job where state < 'completed'`);
    return rows[0].n;
  };
  return {
    enqueueOne: ({ value }) => boss.send(QUEUE, value),
    enqueueMany: (payloads) =>
      boss.insert(
        QUEUE,
        payloads.map(({ value }) => ({ data: value })),
      ),
    async work(concurrency, onJob) {
      await db.executeSql('analyze pgboss.job');
      return work(boss, concurrency, onJob);
    },
    pending: count,
    close: () => boss.stop({ graceful: false }),
  };
}

async function work(boss, concurrency, onJob) {
  const options = { batchSize: concurrency, pollingIntervalSeconds: POLL_SECONDS, burstWhenBatchFull: true };
  const handler = async (jobs) => {
    for (const job of jobs) onJob(job);
  };
  const id = await boss.work(QUEUE, { ...options, localConcurrency: concurrency === 1 ? 1 : 4 }, handler);
  return { close: () => boss.offWork(QUEUE, { id, wait: true }) };
}
