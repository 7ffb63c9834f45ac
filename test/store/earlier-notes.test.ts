import { expect, it } from 'vitest';
import { open } from '../../dist/index.js';
import { FORMAT } from '../../dist/store/sqlite/file/schema.js';
import { RedisServer } from '../support/redis.js';
import { openApp } from '../support/sqlite.js';
import { freshSqlite } from '../support/stores.js';

/** A job that writes a line in its first attempt; `rewrite` makes that line one of version 0.1.0, before the job writes another. */
async function throughAnEarlierVersion(url: string, rewrite: () => Promise<void>) {
  const first = await open(url, { logger: false });
  const once = first.queue('q').work(
    async (job) => {
      await job.progress(5);
      await job.log('old');
      throw new Error('again');
    },
    { backoff: () => 0 },
  );
  await first
    .queue('q')
    .add(1, { id: 'a', attempts: 1 })
    .then((handle) => handle.finished().catch(() => {}));
  await once.close();
  await first.close();
  await rewrite();
  await using second = await open(url, { logger: false });
  const before = await second.queue('q').get('a');
  const worker = second.queue('q').work(async (job) => job.log('new'));
  await second.queue('q').retryDead();
  await second.queue('q').handle('a').finished();
  const after = await second.queue('q').get('a');
  await worker.close();
  return { before, after };
}

function check({ before, after }: Awaited<ReturnType<typeof throughAnEarlierVersion>>): void {
  expect(before).toMatchObject({ progress: 5, log: ['old'], logTimes: [0] });
  expect(before!.progressSteps).toBeUndefined();
  expect(after).toMatchObject({ progress: 5, log: ['old', 'new'], logTimes: [0, expect.any(Number)] });
  expect(after!.logTimes![1]).toBeGreaterThan(1e12);
}

it('a SQLite file of an earlier version: lines without times are read as they are, and new ones get theirs', async () => {
  const store = await freshSqlite();
  const rewrite = async () => {
    const db = openApp(store.url.slice('sqlite:'.length));
    db.exec(`UPDATE notes SET log = 'old' || char(10); ALTER TABLE notes DROP COLUMN steps;
      ALTER TABLE groups DROP COLUMN held; ALTER TABLE queues DROP COLUMN breaker; ALTER TABLE queues DROP COLUMN failed;
      ALTER TABLE queues DROP COLUMN broken; ALTER TABLE queues DROP COLUMN trial; PRAGMA user_version = ${FORMAT - 2}`);
    db.close();
  };
  check(await throughAnEarlierVersion(store.url, rewrite));
  await store.stop();
});

it('Redis data of an earlier version: the same', async () => {
  const redis = await RedisServer.start();
  const rewrite = async () => {
    const [notes] = await redis.client.keys('*notes');
    expect(await redis.client.hdel(notes!, 'sa')).toBe(1);
    await redis.client.hset(notes!, 'la', 'old\n');
  };
  check(await throughAnEarlierVersion(redis.url, rewrite));
  await redis.stop();
});
