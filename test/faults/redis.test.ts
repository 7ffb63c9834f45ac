import { afterEach, describe, expect, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { openStore } from '../../dist/store/open.js';
import { startServer } from '../grpc/support/server.js';
import { type Program, startWorker, withSkew } from '../support/processes.js';
import { Line } from '../support/proxy.js';
import { RedisServer } from '../support/redis.js';
import { ROUNDS } from '../support/rounds.js';
import { until } from '../support/wait.js';

const FAST = { lease: 1_000, heartbeat: 200, sweep: 100 };
const HOUR = 3_600_000;
const quiet = { onError: () => {} };

describe('a Redis that fails', ROUNDS, () => {
  let redis: RedisServer;
  const opened: Crore[] = [];
  const programs: Program[] = [];

  const start = async (args: string[] = []) => {
    redis = await RedisServer.start(args);
    return use(redis.url);
  };
  const use = async (url: string, timeout = 5_000) => {
    const crore = await open(url, { ...quiet, timeout });
    opened.push(crore);
    return crore;
  };
  afterEach(async () => {
    for (const program of programs.splice(0)) await program.end();
    for (const crore of opened.splice(0)) await crore.close();
    await redis.stop();
  });

  it('loses no accepted job when it is killed with SIGKILL under load and restarted', async () => {
    const crore = await start(['--appendonly', 'yes', '--appendfsync', 'always']);
    const queue = crore.queue<number, number>('load');
    const handled = new Map<string, number>();
    queue.work(
      async (job) => {
        handled.set(job.id!, (handled.get(job.id!) ?? 0) + 1);
        await new Promise((resolve) => setTimeout(resolve, 2));
        return job.payload;
      },
      { ...FAST, concurrency: 20, maxCrashes: 50, ...quiet },
    );
    const accepted: string[] = [];
    let refused = 0;
    const produce = (async () => {
      for (let i = 0; i < 600; i++) {
        await queue.add(i, { id: `j${i}`, keep: { count: 10_000 } }).then(
          (handle) => accepted.push(handle.id),
          () => refused++,
        );
      }
    })();
    for (let round = 0; round < 3; round++) {
      await until('some progress', () => handled.size > 60 * (round + 1));
      await redis.down();
      await redis.up();
    }
    await produce;
    await until(
      'every accepted job to be done',
      async () => (await queue.count().catch(() => ({ done: 0 }))).done >= accepted.length,
      { within: 30_000 },
    );
    const counts = await queue.count();
    expect(counts).toMatchObject({ ready: 0, active: 0, scheduled: 0, dead: 0 });
    expect(accepted.filter((id) => !handled.has(id))).toEqual([]);
    expect(accepted.length + refused).toBe(600);
  });

  it('does not perform later what was reported as failed', async () => {
    await start();
    const crore = await use(redis.url, 600);
    const queue = crore.queue<string>('too-late');
    await queue.add('before');
    await redis.down();
    await expect(queue.add('refused')).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    await expect(queue.push('refused')).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    await redis.up();
    await until('the connection to be back', () =>
      queue.add('accepted').then(
        () => true,
        () => false,
      ),
    );
    expect((await queue.count()).ready).toBe(1);
  });

  it('recovers by itself after a restart with data loss', async () => {
    const crore = await start();
    const queue = crore.queue<string>('amnesia');
    const seen: string[] = [];
    queue.work(async (job) => void seen.push(job.payload), { ...FAST, ...quiet });
    await queue.add('before');
    await until('the first job to run', () => seen.includes('before'));
    await redis.down();
    await redis.up();
    await until('an add to be accepted', () =>
      queue.add('after').then(
        () => true,
        () => false,
      ),
    );
    await until('the job after the restart to run', () => seen.includes('after'));
    expect(await crore.queues()).toEqual(['amnesia']);
  });

  it('loses and duplicates nothing while scripts are flushed and connections killed', async () => {
    const crore = await start();
    const queue = crore.queue<number>('chaos');
    const seen: number[] = [];
    queue.work(async (job) => void seen.push(job.payload), { concurrency: 10, ...FAST, ...quiet });
    const { client } = redis;
    let accepted = 0;
    let strikes = 0;
    let stop = false;
    const chaos = (async () => {
      while (!stop) {
        // One fault per bit of progress: with a fixed pause, slow connections would allow none.
        const before = accepted;
        strikes += 1;
        await client.script('FLUSH').catch(() => {});
        await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes').catch(() => {});
        await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub').catch(() => {});
        await until('an add to succeed', () => stop || accepted > before, { every: 30 });
      }
    })();
    const ids = Array.from({ length: 300 }, (_x, i) => i);
    try {
      for (const i of ids) {
        await queue.add(i, { id: `j${i}` });
        accepted += 1;
      }
    } finally {
      stop = true;
      await chaos;
    }
    expect(strikes).toBeGreaterThan(5);
    await until('all jobs to be done', async () => (await queue.count()).done === ids.length, { within: 30_000 });
    expect([...new Set(seen)].sort((a, b) => a - b)).toEqual(ids);
  });

  it('causes no worker to be reaped after the server was suspended for several leases', async () => {
    const crore = await start();
    const queue = crore.queue<string>('stall');
    const crashes: number[] = [];
    const work = (other: Crore) =>
      other.queue<string>('stall').work(
        async (job) => {
          crashes.push(job.crashes);
          await new Promise((resolve) => setTimeout(resolve, 4_500));
        },
        { ...FAST, ...quiet },
      );
    work(crore);
    work(await use(redis.url));
    await queue.addMany([{ payload: 'a' }, { payload: 'b' }]);
    await until('both jobs to run', () => crashes.length === 2);
    process.kill(redis.pid, 'SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 3 * FAST.lease));
    process.kill(redis.pid, 'SIGCONT');
    await until('both jobs to end', async () => (await queue.count()).done === 2);
    expect((await queue.list('done')).jobs.map((job) => job.crashes)).toEqual([0, 0]);
  });

  it('is the clock of workers whose own clocks are an hour off: no one is reaped, no job is delayed', async () => {
    const crore = await start();
    const queue = crore.queue<string, number>('skewed');
    const workers = await Promise.all(
      [-HOUR, 0, HOUR].map((skew) =>
        startWorker({ url: redis.url, queue: 'skewed', take: 300, options: { sweep: 100 } }, withSkew(skew)),
      ),
    );
    programs.push(...workers);
    const worked = ({ lines }: Program) => lines.some((line) => line.startsWith('end'));
    let added = 0;
    await until(
      'each of them to have worked',
      async () => {
        added += (await queue.addMany([1, 2, 3].map((i) => ({ payload: 'x', delay: 100 * i })))).length;
        return workers.every(worked);
      },
      { every: 300 },
    );
    await until('all jobs to be done', async () => (await queue.count()).done === added);
    const { jobs } = await queue.list('done', { limit: 1_000 });
    expect(jobs.filter(({ attempt, crashes }) => attempt !== 1 || crashes !== 0)).toEqual([]);
  });

  it('refuses new jobs at maxmemory and still lets work be finished', async () => {
    const crore = await start();
    const queue = crore.queue<string>('full');
    await queue.addMany(Array.from({ length: 50 }, () => ({ payload: 'x'.repeat(1_000) })));
    const { client } = redis;
    await client.config('SET', 'maxmemory', '1mb');
    await expect(queue.add('one more')).rejects.toMatchObject({ code: 'STORE_FULL' });
    await expect(queue.push('one more')).rejects.toMatchObject({ code: 'STORE_FULL' });
    const before = (await queue.count()).ready;
    expect(before).toBe(50);
    const worker = queue.work(async () => {}, { concurrency: 5, ...FAST, ...quiet });
    await until('all jobs to be done though memory is full', async () => (await queue.count()).done === 50);
    await worker.close();
    await client.config('SET', 'maxmemory', '0');
    expect((await queue.add('again')).outcome).toBe('created');
  });

  it('can be drained by workers started when it is full, through the library and through a server', async () => {
    const crore = await start();
    for (const name of ['full', 'served']) {
      await crore.queue<string>(name).addMany(Array.from({ length: 50 }, () => ({ payload: 'x'.repeat(1_000) })));
    }
    await redis.client.config('SET', 'maxmemory', '1mb');
    const later = await use(redis.url);
    await expect(later.queue('full').add('one more')).rejects.toMatchObject({ code: 'STORE_FULL' });
    const handler = async (job: { progress(value: unknown): Promise<void>; log(line: string): Promise<void> }) => {
      await job.progress(50);
      await job.log('half');
    };
    later.queue('full').work(handler, { concurrency: 5, ...FAST, ...quiet });
    await until(
      'all jobs to be done though memory is full',
      async () => (await later.queue('full').count()).done === 50,
    );
    const server = await startServer({ url: redis.url, grace: 100 });
    const client = await use(`grpc://${server.address}`);
    client.queue('served').work(async () => {}, { concurrency: 5, ...FAST, ...quiet });
    await until('all jobs to be done by the server', async () => (await later.queue('served').count()).done === 50);
    for (const one of opened.splice(0)) await one.close();
    await server.close();
    await redis.client.config('SET', 'maxmemory', '0');
  });

  it('keeps no name and no key of queues that were used once, or obliterated under load', async () => {
    const crore = await start();
    const store = await openStore(redis.url, { timeout: 5_000 });
    const adding = Array.from({ length: 300 }, (_x, i) =>
      crore
        .queue('busy')
        .add(i, i % 3 === 0 ? { group: `g${i % 40}` } : {})
        .catch(() => {}),
    );
    const waits = await crore.queue('busy').add(1, { id: 'up', delay: '1h' });
    for (let i = 0; i < 50; i++) {
      await crore.queue('after').add(i, { needs: [{ queue: 'busy', id: waits.id }] });
      if (i % 10 === 0)
        await crore
          .queue('busy')
          .obliterate()
          .catch(() => {});
      if (i % 10 === 0) await crore.queue('busy').add(1, { id: 'up', delay: '1h' });
    }
    await Promise.all(adding);
    for (const name of ['busy', 'after']) await crore.queue(name).obliterate();
    const left = await redis.client.keys('*');
    expect(left.filter((key) => key !== 'crore:format' && !key.includes('registry') && !key.endsWith(':meta'))).toEqual(
      [],
    );
    await store.close();
  });

  it('names a key of the wrong type and changes nothing', async () => {
    const crore = await start();
    const queue = crore.queue<string>('wrong');
    await queue.add('a', { priority: 3 });
    await redis.client.set('crore:queues:wrong', 'not a list');
    await expect(queue.push('task')).rejects.toMatchObject({
      code: 'STORE_CORRUPT',
      message: expect.stringContaining('WRONGTYPE'),
    });
    const errors: string[] = [];
    const worker = queue.work(async () => {}, { ...FAST, onError: (error) => void errors.push(error.message) });
    await until('the worker to report the error', () => errors.some((message) => message.includes('WRONGTYPE')));
    await worker.close();
    await redis.client.del('crore:queues:wrong');
    expect(await queue.count()).toMatchObject({ ready: 1, active: 0 });
  });

  describe('behind a proxy that drops replies', () => {
    let line: Line;

    const through = async (timeout: number) => {
      redis = await RedisServer.start();
      line = await Line.to(redis.port);
      return use(`redis://127.0.0.1:${line.port}`, timeout);
    };
    afterEach(() => line.close());
    it('adds once although the first reply was lost', async () => {
      const crore = await through(1_500);
      const queue = crore.queue<string>('lost-reply');
      await queue.add('warm up');
      line.swallowReplies();
      const adding = queue.add('x', { id: 'mine' });
      const making = queue.add('y');
      await new Promise((resolve) => setTimeout(resolve, 200)); // let the commands reach the server
      line.mend();
      expect((await adding).outcome).toBe('created');
      expect((await making).outcome).toBe('created');
      expect((await queue.count()).ready).toBe(3);
    });

    it('gives back the entries of a lost claim', async () => {
      const crore = await through(1_500);
      const queue = crore.queue<string>('lost-claim');
      const direct = await use(redis.url);
      const seen: string[] = [];
      const worker = queue.work(async (job) => void seen.push(job.payload), { ...FAST, concurrency: 5, ...quiet });
      await worker.ready();
      await queue.add('first');
      await until('the first job to run', () => seen.length === 1);
      line.swallowReplies();
      await direct.queue('lost-claim').addMany(['a', 'b', 'c'].map((payload) => ({ payload })));
      await new Promise((resolve) => setTimeout(resolve, 300)); // a claim is sent, and its reply is lost
      line.mend();
      await until('all of them to run', () => seen.length >= 4, { within: 30_000 });
      expect([...seen].sort()).toEqual(['a', 'b', 'c', 'first']);
      expect(await direct.queue('lost-claim').count()).toMatchObject({ ready: 0, active: 0 });
    });

    it('tells a producer of raw tasks that the outcome is unknown', async () => {
      const crore = await through(1_500);
      const queue = crore.queue('lost-push');
      await queue.push('warm up');
      line.swallowReplies();
      const pushing = queue.push('x').catch((error: { code: string }) => error.code);
      await new Promise((resolve) => setTimeout(resolve, 200)); // let the command reach the server
      line.mend();
      expect(await pushing).toBe('STORE_UNCERTAIN');
    });

    it('fails within its time limit when no reply arrives at all', async () => {
      const crore = await through(500);
      const queue = crore.queue<string>('silence');
      await queue.add('warm up');
      line.swallowReplies();
      await expect(queue.count()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    });
  });

  it('gives a dead worker’s jobs back once when many processes notice at the same time', async () => {
    const crore = await start();
    const { openStore } = await import('../../dist/store/open.js');
    const { lose } = await import('../../dist/job/transitions.js');
    const { newJob, settlementOf } = await import('../support/jobs.js');
    let now = 1_800_000_000_000;
    const stores = await Promise.all(
      Array.from({ length: 20 }, () => openStore(redis.url, { timeout: 5_000, clock: () => now })),
    );
    const [store] = stores;
    await store!.join('corpse', 'dead', { lease: 1_000, info: '' });
    await store!.add(
      'corpse',
      Array.from({ length: 30 }, (_x, i) => newJob(`j${i}`)),
    );
    await store!.claim({ queue: 'corpse', worker: 'dead', lease: 1_000 }, 30);
    await store!.sweep('corpse', { lease: 1_000, every: 0 });
    now += 1_000;
    const applied = await Promise.all(
      stores.map(async (one) => {
        const { lost } = await one.sweep('corpse', { lease: 1_000, every: 0 });
        return (
          await one.settle(
            'corpse',
            lost.map((entry) => settlementOf(entry, lose(entry.job!, 9, 'dead'))),
          )
        ).filter(Boolean).length;
      }),
    );
    expect(applied.reduce((sum, n) => sum + n, 0)).toBe(30);
    expect(await crore.queue('corpse').count()).toMatchObject({ ready: 30, active: 0 });
    expect((await crore.queue('corpse').list('ready')).jobs.map((job) => job.id)).toEqual(
      Array.from({ length: 30 }, (_x, i) => `j${i}`),
    );
    for (const one of stores) await one.close();
  });
});
