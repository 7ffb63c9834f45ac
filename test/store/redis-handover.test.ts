import { afterEach, describe, expect, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { Line } from '../support/proxy.js';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';

describe('on Redis, a job for a worker that waits in the same process', () => {
  let redis: RedisServer;
  let line: Line | undefined;
  let crore: Crore;
  const errors: string[] = [];

  const start = async (args: string[] = []) => {
    redis = await RedisServer.start(args);
    line = await Line.to(redis.port);
    crore = await open(`redis://127.0.0.1:${line.port}`, {
      timeout: 3_000,
      onError: (error) => errors.push(error.message),
    });
    return crore.queue<number, number>('mail');
  };
  afterEach(async () => {
    errors.length = 0;
    await crore.close();
    line?.close();
    await redis.stop();
  });

  it('never waits in the queue', async () => {
    const queue = await start();
    const worker = queue.work(async (job) => job.payload * 2, { concurrency: 5 });
    await worker.ready();
    expect(await (await queue.add(1)).finished()).toBe(2);
    await until('the worker to wait again', async () => (await queue.count()).active === 0);
    const [pushed, popped] = [await redis.calls('lpush'), await redis.calls('rpop')];
    const added = await queue.addMany([2, 3, 4].map((payload) => ({ payload })));
    expect(await Promise.all(added.map((one) => one.finished()))).toEqual([4, 6, 8]);
    expect(await redis.calls('rpop')).toBe(popped);
    expect((await redis.calls('lpush')) - pushed).toBeLessThanOrEqual(3); // the list of ended jobs
    expect(await queue.count()).toMatchObject({ ready: 0, active: 0, done: 4 });
  });

  it('is not given while the queue is paused', async () => {
    const queue = await start();
    const started: number[] = [];
    const worker = queue.work(async (job) => started.push(job.payload), { concurrency: 5 });
    await worker.ready();
    await queue.pause();
    await queue.add(1);
    await queue.add(2);
    expect(await queue.count()).toMatchObject({ ready: 2, active: 0 });
    expect(started).toEqual([]);
    await queue.resume();
    await until('the jobs to start', () => started.length === 2);
    expect(started).toEqual([1, 2]);
  });

  it('does not overtake a task that another program has pushed without a signal', async () => {
    await start();
    const tasks = crore.queue<string>('tasks');
    const started: string[] = [];
    const worker = tasks.work(async (job) => started.push(String(job.payload)), { concurrency: 5 });
    await worker.ready();
    await tasks.push('first');
    await until('the first task', () => started.length === 1);
    await redis.client.lpush('crore:queues:tasks', 'second');
    await tasks.push('third');
    await until('all tasks', () => started.length === 3);
    expect(started).toEqual(['first', 'second', 'third']);
  });

  it('runs once although the reply was lost', async () => {
    const queue = await start();
    const started: number[] = [];
    const worker = queue.work(async (job) => started.push(job.payload), { concurrency: 5 });
    await worker.ready();
    for (const number of [0, 1]) await (await queue.add(number)).finished(); // the server knows the scripts now
    const before = await redis.calls('hset');
    line!.swallowReplies();
    const adding = queue.add(2);
    await until('the server', async () => (await redis.calls('hset')) > before);
    line!.mend();
    expect((await adding).outcome).toBe('created');
    await until('the server', async () => (await queue.count()).done === 3);
    expect(started).toEqual([0, 1, 2]);
  });

  it('is refused without an error for the worker when the memory of the server is full', async () => {
    const queue = await start();
    const started: number[] = [];
    const worker = queue.work(async (job) => started.push(job.payload), { concurrency: 5 });
    await worker.ready();
    await queue.add(0);
    await until('the server', async () => (await queue.count()).done === 1);
    await redis.client.config('SET', 'maxmemory', '1');
    await expect(queue.add(1)).rejects.toMatchObject({ code: 'STORE_FULL' });
    await redis.client.config('SET', 'maxmemory', '0');
    await queue.add(2);
    await until('the jobs to start', () => started.length === 2);
    expect(started).toEqual([0, 2]);
    expect(errors.filter((message) => message.includes('claim'))).toEqual([]);
  });
});
