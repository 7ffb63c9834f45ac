import { afterEach, describe, expect, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { Line } from '../support/proxy.js';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';

/** Each `open` has connections of its own, as if it was another process. */
describe('on Redis, a job for a worker that waits in another process', () => {
  let redis: RedisServer;
  const cleanups: (() => unknown)[] = [];

  const connected = async (url = redis.url): Promise<Crore> => {
    const crore = await open(url, { timeout: 500, onError: () => {} });
    cleanups.push(() => crore.close());
    return crore;
  };
  const start = async (args: string[] = []) => {
    redis = await RedisServer.start(args);
    return (await connected()).queue<number>('mail');
  };
  /** A worker that waits at the empty queue; what it starts is added to `started`. */
  const waiting = async (crore: Crore, started: number[], name = 'mail') => {
    const queue = crore.queue<number>(name);
    const worker = queue.work(async (job) => void started.push(Number(job.payload)), { concurrency: 5 });
    await worker.ready();
    await isWaiting(worker.id, name);
    return worker;
  };
  const isWaiting = (worker: string, name = 'mail') =>
    until('the worker to wait', async () => {
      const field = await redis.client.hget(`crore:{crore:queues:${name}}:meta`, 'waiting');
      return field?.startsWith(`${worker}\0`) ?? false;
    });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
    await redis.stop();
  });

  it('is leased and sent to it when it is added', async () => {
    const producer = await start();
    const started: number[] = [];
    const worker = await waiting(await connected(), started);
    const popped = await redis.calls('rpop');
    for (const number of [1, 2, 3]) {
      await producer.add(number);
      await until('the job to start', () => started.length === number);
      await isWaiting(worker.id);
    }
    expect(await redis.calls('rpop')).toBe(popped);
    expect(started).toEqual([1, 2, 3]);
    await until('the jobs to end', async () => (await producer.count()).done === 3);
    expect(await producer.count()).toMatchObject({ ready: 0, active: 0 });
  });

  it('is sent with the others of its call, in their order, if the worker has room for them', async () => {
    const producer = await start();
    const started: number[] = [];
    await waiting(await connected(), started);
    const popped = await redis.calls('rpop');
    await producer.addMany([1, 2, 3].map((payload) => ({ payload })));
    await until('the jobs to start', () => started.length === 3);
    expect(started).toEqual([1, 2, 3]);
    expect(await redis.calls('rpop')).toBe(popped);
    await producer.addMany(Array.from({ length: 300 }, (_x, i) => ({ payload: i + 4 })));
    await until('more than it has room for', () => started.length === 303);
    expect(started).toEqual(Array.from({ length: 303 }, (_x, i) => i + 1));
  });

  it('may be a raw task', async () => {
    const producer = await start();
    const started: number[] = [];
    const worker = await waiting(await connected(), started);
    const popped = await redis.calls('rpop');
    await producer.push('7');
    await until('the task to start', () => started.length === 1);
    await isWaiting(worker.id);
    expect(started).toEqual([7]);
    expect(await redis.calls('rpop')).toBe(popped);
    await producer.push(['8', '9']);
    await until('the tasks to start', () => started.length === 3);
    expect(await producer.count()).toMatchObject({ ready: 0 });
  });

  it('waits in the queue if the process of the worker is gone, with no attempt and no crash counted', async () => {
    const producer = await start();
    const line = await Line.to(redis.port);
    cleanups.push(() => line.close());
    await waiting(await connected(`redis://127.0.0.1:${line.port}`), []);
    line.admits = 'none';
    line.cut();
    await until('the server to notice', async () => (await redis.client.pubsub('CHANNELS', '*deliveries*')).length < 2);
    const handle = await producer.add(1);
    expect(await producer.get(handle.id)).toMatchObject({ state: 'ready', attempt: 0, crashes: 0 });
    const started: number[] = [];
    (await connected()).queue<number>('mail').work(async (one) => void started.push(one.payload));
    await until('another worker to take it', () => started.length === 1);
  });

  it('comes back when the connection on which it was sent has died in silence, and runs once', async () => {
    const producer = await start();
    const line = await Line.to(redis.port);
    cleanups.push(() => line.close());
    const started: number[] = [];
    await waiting(await connected(`redis://127.0.0.1:${line.port}`), started);
    // Only the worker's own calls get answers from now on.
    line.onReply = (chunk) => !chunk.includes('deliveries') && !chunk.includes('pong');
    const handle = await producer.add(1);
    expect((await producer.get(handle.id))?.state).toBe('active');
    line.onReply = (chunk) => !chunk.includes('pong');
    await until('the job to start', () => started.length === 1);
    await until('the job to end', async () => (await producer.count()).done === 1);
    expect(started).toEqual([1]);
    expect(await producer.get(handle.id)).toMatchObject({ attempt: 1, crashes: 0 });
  });

  it('still comes after messages that nobody can read', async () => {
    const producer = await start();
    const started: number[] = [];
    const worker = await waiting(await connected(), started);
    const channel = (await redis.client.hget('crore:{crore:queues:mail}:meta', 'waiting'))!.split('\0')[3]!;
    const head = ['crore:{crore:queues:mail}:signals', worker.id, 'nonce', '1', '1'];
    const packed = (parts: string[]) =>
      Buffer.concat([
        Buffer.from([0x90 + parts.length]),
        ...parts.flatMap((one) => [Buffer.from([0xd9, one.length]), Buffer.from(one)]),
      ]);
    const endless = Buffer.from([0xdd, 0xff, 0xff, 0xff, 0xff]);
    const [ids, none] = [packed(['a', 'b']).toString('latin1'), packed([]).toString('latin1')];
    const wrong = [Buffer.alloc(0), Buffer.from('nonsense'), Buffer.alloc(100, 0xff), endless, packed(head)];
    wrong.push(
      packed([...head, 'text', 'text']),
      packed([...head, none, ids]),
      packed([...head.slice(0, 3), '-', '-', ids, ids]),
    );
    for (const message of wrong) expect(await redis.client.publish(channel, message)).toBe(1);
    await isWaiting(worker.id);
    await producer.add(1);
    await until('the job to start', () => started.length === 1);
    await until('the job to end', async () => (await producer.count()).done === 1);
    expect(started).toEqual([1]);
  });

  it('is not sent while the queue is paused', async () => {
    const producer = await start();
    const started: number[] = [];
    await waiting(await connected(), started);
    await producer.pause();
    await producer.add(1);
    expect(await producer.count()).toMatchObject({ ready: 1, active: 0 });
    await producer.resume();
    await until('the job to start', () => started.length === 1);
  });

  it('does not overtake a task that another program has pushed without a signal', async () => {
    const producer = await start();
    const started: number[] = [];
    await waiting(await connected(), started);
    await redis.client.lpush('crore:queues:mail', '1');
    await producer.push('2');
    await until('both to start', () => started.length === 2);
    expect(started).toEqual([1, 2]);
  });

  it('is refused when the memory of the server is full, and the worker waits on', async () => {
    const producer = await start();
    const started: number[] = [];
    const worker = await waiting(await connected(), started);
    await redis.client.config('SET', 'maxmemory', '1');
    await expect(producer.add(1)).rejects.toMatchObject({ code: 'STORE_FULL' });
    await redis.client.config('SET', 'maxmemory', '0');
    await isWaiting(worker.id);
    await producer.add(2);
    await until('the job to start', () => started.length === 1);
    expect(started).toEqual([2]);
  });

  it('runs once, and soon, while workers come and go', async () => {
    const producer = await start();
    const processes = await Promise.all([1, 2, 3].map(() => connected()));
    const started: number[] = [];
    let last = 0;
    let adding = true;
    const workers = processes.map(async (crore) => {
      while (adding) {
        const worker = crore.queue<number>('mail').work(async (job) => void started.push(job.payload));
        await worker.ready();
        const enough = last + 5;
        await until('some jobs', () => last >= enough || !adding);
        await worker.close();
      }
    });
    while (last < 200) {
      await producer.add(++last);
      if (last % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 2)); // workers find nothing in between
    }
    await until('all but what waits to be done', async () => (await producer.count()).active === 0);
    adding = false;
    await Promise.all(workers);
    (await connected()).queue<number>('mail').work(async (job) => void started.push(job.payload));
    // Well within the lease: nothing was left behind with a worker that has gone.
    await until('all jobs', async () => (await producer.count()).done === 200, { within: 8_000 });
    expect([...started].sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_x, i) => i + 1));
  });
});
