import { Cluster, Redis } from 'ioredis';
import { createClient as createClient4 } from 'node-redis-4';
import { createClient as createClient5 } from 'node-redis-5';
import { createClient as createClient6 } from 'node-redis-6';
import { describe, expect, inject, it } from 'vitest';
import type { NodeRedisClient } from '../../dist/store/redis/connection/node-redis.js';
import { Worqr } from '../../dist/worqr/index.js';
import { Line } from '../support/proxy.js';
import { RedisServer, startCluster } from '../support/redis.js';
import { startSentinel } from '../support/servers.js';
import { until } from '../support/wait.js';
import { LIVELY, SHORT, workshop } from './support.js';

describe('opening a Worqr', () => {
  const { place, make, cleanups } = workshop();
  const serve = async (...args: Parameters<typeof RedisServer.start>) => {
    const redis = await RedisServer.start(...args);
    cleanups.push(() => redis.stop());
    return redis;
  };
  const client = (options: object = {}) => {
    const redis = new Redis(inject('redisUrl'), options);
    redis.on('error', () => {});
    cleanups.push(() => redis.disconnect());
    return redis;
  };
  const roundTrip = async (worqr: Worqr) => {
    const heard: string[] = [];
    worqr.on('q', (type: string, message: string) => heard.push(`${type} ${message}`));
    await worqr.startWorker();
    await worqr.startWork('q');
    await worqr.enqueue('q', ['a', 'b']);
    await until('the work event arrives', () => heard.includes('work 2'));
    const process = await worqr.dequeue('q');
    await worqr.finishProcess(process!.id);
    await until('the done event arrives', () => heard.some((news) => news.startsWith('done ') && news.includes('"a"')));
    expect(await worqr.getTasks('q')).toEqual(['b']);
    expect(await worqr.getWorkers()).toContain(worqr.getWorkerId());
    await worqr.deleteQueue('q');
  };

  it('supports host, port and password', async () => {
    const redis = await serve(['--requirepass', 's/e:c ret@'], { password: 's/e:c ret@' });
    const where = { host: '127.0.0.1', port: redis.port };
    await roundTrip(make({ ...where, password: 's/e:c ret@' }));
    expect(await redis.client.smembers('worqr:registry')).toEqual(['q']);
    const wrong = make({ ...where, password: 'wrong' }, { timeout: 1_000 });
    await expect(wrong.enqueue('q', 'a')).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    await expect(wrong.enqueue('q', 'a')).rejects.not.toThrow(/wrong@/);
  });

  it('supports a URL, with the prefix in it or as an option, in memory, and on a cluster', async () => {
    const url = inject('redisUrl');
    const [one, two] = [make(`${url}?prefix=one-${process.pid}`), make(url, { redisKeyPrefix: `two-${process.pid}` })];
    await one.enqueue('q', 'a');
    expect(await two.countQueue('q')).toBe(0);
    expect(await make(url, { redisKeyPrefix: `one-${process.pid}` }).getTasks('q')).toEqual(['a']);
    await roundTrip(make('sqlite::memory:'));
    const cluster = await startCluster();
    cleanups.push(() => cluster.stop());
    const spread = make(cluster.url, LIVELY);
    await roundTrip(spread);
    await Promise.all([...'abcdefgh'].map((name) => spread.enqueue(`q-${name}`, name, true)));
    expect(await spread.getQueues()).toHaveLength(8);
    const given = new Cluster(cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
    cleanups.push(() => given.disconnect());
    const sharing = make({ data: given });
    await roundTrip(sharing);
    expect(await sharing.countQueue('q-a')).toBe(1);
    await sharing.close();
    await spread.close();
  });

  it('supports Sentinel', async () => {
    const redis = await serve();
    const sentinel = await startSentinel(redis.dir, redis.port);
    cleanups.push(() => sentinel.stop());
    const worqr = make(`redis+sentinel://127.0.0.1:${sentinel.port}/main`);
    await roundTrip(worqr);
    await worqr.close();
  });

  it('supports connections of the application, and leaves them open and unchanged', async () => {
    const [data, subscribe] = [client(), client({ lazyConnect: true })];
    const redisKeyPrefix = `given-${process.pid}`;
    const own: string[] = [];
    await subscribe.subscribe('news of the application');
    subscribe.on('message', (_channel, message) => own.push(message));
    const worqr = make({ data, subscribe }, { redisKeyPrefix, ...SHORT });
    await roundTrip(worqr);
    await worqr.enqueue('q', 'a');
    await worqr.dequeue('q');
    const peer = make(inject('redisUrl'), { redisKeyPrefix, ...LIVELY });
    await peer.startWorker();
    // Only the main thread can send heartbeats here: the worker must still be registered three leases later.
    const started = performance.now();
    await until('three leases have passed', () => performance.now() - started > 3_000);
    expect((await peer.getWorkers()).sort()).toEqual([peer.getWorkerId(), worqr.getWorkerId()].sort());
    await worqr.close();
    expect(await peer.getTasks('q')).toEqual(['a']);
    expect([data.status, subscribe.status]).toEqual(['ready', 'ready']);
    for (const event of ['error', 'close', 'end', 'ready', 'messageBuffer']) {
      expect(data.listenerCount(event), event).toBe(event === 'error' ? 1 : 0);
      expect(subscribe.listenerCount(event), event).toBe(event === 'error' ? 1 : 0);
    }
    await data.publish('news of the application', 'hello');
    await until('the message of the application arrives', () => own.includes('hello'));
  });

  it('supports one connection of the application next to one of its own', async () => {
    const given = client();
    await roundTrip(make({ data: given }, { redisKeyPrefix: `half-${process.pid}` }));
    await roundTrip(make({ subscribe: client() }, { redisKeyPrefix: `other-half-${process.pid}` }));
    expect(given.status).toBe('ready');
  });

  it('supports one connection of the application, and opens the other one as the options say', async () => {
    const [one, other] = [await serve(), await serve()];
    const where = { host: '127.0.0.1', port: one.port };
    const own = () => {
      const redis = new Redis(one.url, { lazyConnect: true });
      redis.on('error', () => {});
      cleanups.push(() => redis.disconnect());
      return redis;
    };
    const data = own();
    await roundTrip(make({ data, ...where }));
    await roundTrip(make({ subscribe: own(), ...where }));
    // With both connections given no address is needed, but giving one is not an error.
    const both = make({ data, subscribe: own(), host: '127.0.0.1', port: other.port });
    await both.enqueue('both', 'a');
    expect(await data.llen('worqr:queues:both')).toBe(1);
    expect(await other.client.dbsize()).toBe(0);
  });

  describe.each([
    ['4', createClient4],
    ['5', createClient5],
    ['6', createClient6],
  ])('with clients of node-redis %s', (version, create) => {
    const connect = async (url: string, opened = true) => {
      const redis = (create as (options: object) => unknown)({ url }) as NodeRedisClient;
      redis.on('error', () => {});
      cleanups.push(() => void (redis.isOpen && (redis.destroy ? redis.destroy() : redis.disconnect?.())));
      if (opened) await redis.connect();
      return redis;
    };

    it('works, and leaves them open and unchanged', async () => {
      const url = inject('redisUrl');
      const [data, subscribe] = [await connect(url), await connect(url)];
      const redisKeyPrefix = `node-redis-${version}-${process.pid}`;
      const worqr = make({ data, subscribe }, { redisKeyPrefix, ...SHORT });
      await roundTrip(worqr);
      const bytes = make({ data, subscribe }, { redisKeyPrefix, binary: true, ...SHORT });
      const every = Buffer.from(Array.from({ length: 256 }, (_x, i) => i));
      await bytes.enqueue('bytes', every);
      expect(await bytes.peekQueue('bytes')).toEqual(every);
      await worqr.close();
      await bytes.close();
      expect([data.isReady, subscribe.isReady]).toEqual([true, true]);
    });

    it('works with one of them, connected or not, next to a connection of its own', async () => {
      const url = inject('redisUrl');
      await roundTrip(make({ data: await connect(url) }, { redisKeyPrefix: `data-${version}-${process.pid}` }));
      const subscribe = await connect(url, false);
      await roundTrip(make({ subscribe }, { redisKeyPrefix: `subscribe-${version}-${process.pid}` }));
    });

    it('settles every call while the server is down, and continues when it is back', async () => {
      const redis = await serve();
      const worqr = make({ data: await connect(redis.url), subscribe: await connect(redis.url) }, { timeout: 500 });
      await worqr.enqueue('q', 'a');
      await redis.down();
      await expect(worqr.countQueue('q')).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
      await redis.up();
      await until('calls succeed again', () =>
        worqr
          .enqueue('q', 'b')
          .then(() => true)
          .catch(() => false),
      );
      expect(await worqr.getTasks('q')).toContain('b');
    });
  });

  it('notifies workers of the original Worqr about tasks, cancellations and deletions', async () => {
    const redis = await serve();
    const listener = redis.client.duplicate();
    cleanups.push(() => listener.disconnect());
    const heard: string[] = [];
    await listener.subscribe('worqr_q_work', 'worqr_q_cancel', 'worqr_q_delete');
    listener.on('message', (channel, message) => heard.push(`${channel} ${message}`));
    const worqr = make(redis.url);
    await worqr.enqueue('q', ['a', 'b', 'c']);
    await worqr.cancelTasks('q', 'a');
    await worqr.deleteQueue('q');
    await until('all three messages arrive', () => heard.length === 3);
    expect(heard).toEqual(['worqr_q_work 3', 'worqr_q_cancel a', 'worqr_q_delete ']);
    // This is what a producer of the original Worqr does.
    await worqr.startWorker();
    await worqr.startWork('q');
    await redis.client.multi().lpush('worqr:queues:q', 'd').publish('worqr_q_work', '1').exec();
    expect((await worqr.dequeue('q'))?.task).toBe('d');
  });

  it('refuses invalid options before opening anything', () => {
    const good = client({ lazyConnect: true });
    const foreign = { isOpen: true, sendCommand: () => {}, connect: () => {}, on: () => {} };
    const bad: [() => unknown, string, RegExp][] = [
      [() => new Worqr({ data: foreign as never }), 'BAD_OPTION', /data is not a client of ioredis/],
      [() => new Worqr({ data: good, subscribe: null as never }), 'BAD_OPTION', /subscribe is not a client/],
      [() => new Worqr({ data: good, subscribe: good }), 'BAD_OPTION', /separate connections/],
      [() => new Worqr({ data: client({ lazyConnect: true, keyPrefix: 'x' }) }), 'BAD_OPTION', /keyPrefix/],
      [() => new Worqr({ data: client({ lazyConnect: true, stringNumbers: true }) }), 'BAD_OPTION', /stringNumbers/],
      [() => new Worqr({ data: good, host: 'a/b' }), 'BAD_OPTION', /host 'a\/b'/],
      [() => new Worqr({ host: 'a/b' }), 'BAD_OPTION', /host 'a\/b'/],
      [() => new Worqr({ port: Number.NaN }), 'BAD_OPTION', /port/],
      [() => new Worqr({ hots: 'x' } as never), 'BAD_OPTION', /unknown option 'hots'/],
      [() => new Worqr('http://localhost'), 'BAD_URL', /http/],
      [() => new Worqr('redis://h?prefix=a', { redisKeyPrefix: 'b' }), 'BAD_OPTION', /different prefixes/],
      [() => new Worqr({}, { redisKeyPrefix: '{x}' }), 'BAD_OPTION', /redisKeyPrefix/],
      [() => new Worqr({}, { workerTimeout: 0 }), 'BAD_OPTION', /workerTimeout/],
      [() => new Worqr({}, { workerTimeout: 1 }), 'BAD_OPTION', /must be shorter than workerTimeout/],
      [() => new Worqr({}, { workerId: '' }), 'BAD_NAME', /workerId/],
      [() => new Worqr({}, { debugMode: 'yes' as never }), 'BAD_OPTION', /debugMode/],
      [() => new Worqr({}, { workerTimout: 3 } as never), 'BAD_OPTION', /workerTimout/],
    ];
    for (const [open, code, message] of bad) {
      expect(open).toThrow(message);
      expect(open).toThrow(expect.objectContaining({ code }));
    }
  });

  it('refuses invalid calls by name, before anything changes', async () => {
    const worqr = make(await place.sqlite());
    const bad: [Promise<unknown>, string][] = [
      [worqr.enqueue('', 'a'), 'BAD_NAME'],
      [worqr.enqueue('q\0', 'a'), 'BAD_NAME'],
      [worqr.enqueue('q', 5 as never), 'BAD_PAYLOAD'],
      [worqr.enqueue('q', ['a', null] as never), 'BAD_PAYLOAD'],
      [worqr.enqueue('q', 'x'.repeat(17_000_000)), 'PAYLOAD_TOO_LARGE'],
      [worqr.enqueue('q', Array(10_001).fill('x'), true), 'BAD_PAYLOAD'],
      [worqr.enqueue('q', Array(20).fill('x'.repeat(4_000_000))), 'PAYLOAD_TOO_LARGE'],
      [worqr.cancelTasks('q', undefined as never), 'BAD_PAYLOAD'],
      [worqr.finishProcess('1.1-000.abc:q', 10n), 'BAD_PAYLOAD'],
      [worqr.failWorker(''), 'BAD_NAME'],
      [worqr.dequeue({} as never), 'BAD_NAME'],
    ];
    for (const [call, code] of bad) await expect(call).rejects.toMatchObject({ code });
    expect(await worqr.getQueues()).toEqual([]);
  });
});

describe('Worqr when Redis fails', () => {
  const { make, worker, cleanups } = workshop();
  const serve = async (...args: Parameters<typeof RedisServer.start>) => {
    const redis = await RedisServer.start(...args);
    cleanups.push(() => redis.stop());
    return redis;
  };
  const list = 'worqr:queues:q';

  it('processes tasks that other clients push onto the list, and LRANGE shows the waiting ones', async () => {
    const redis = await serve();
    const { worqr, heard } = await worker(redis.url, 'q', LIVELY);
    expect(await worqr.dequeue('q')).toBeNull();
    await redis.client.lpush(list, 'from outside', 'and one more');
    await until('the work event arrives', () => heard.includes('work 2'));
    expect((await worqr.dequeue('q'))!.task).toBe('from outside');
    await worqr.enqueue('q', ['c', 'd']);
    expect(await redis.client.lrange(list, 0, -1)).toEqual(['d', 'c', 'and one more']);
  });

  it('finds work whose notification was lost', async () => {
    const redis = await serve();
    const { worqr, heard } = await worker(redis.url, 'q', LIVELY);
    const producer = make(redis.url);
    await producer.enqueue('other', 'x');
    await redis.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await redis.client.lpush(list, 'unheard');
    await until('the work event arrives', () => heard.includes('work 1'));
    expect((await worqr.dequeue('q'))!.task).toBe('unheard');
  });

  it('settles every call with a clear error while Redis is down, and works again afterwards', async () => {
    const redis = await serve();
    const { worqr, heard } = await worker(redis.url, 'q', { ...LIVELY, timeout: 700 });
    await worqr.enqueue('q', 'a');
    const process = await worqr.dequeue('q');
    await redis.down();
    const calls = [
      worqr.enqueue('q', 'b'),
      worqr.getQueues(),
      worqr.peekQueue('q'),
      worqr.countQueue('q'),
      worqr.getTasks('q'),
      worqr.deleteQueue('q'),
      worqr.cancelTasks('q', 'a'),
      worqr.getWorkers(),
      worqr.getWorkingQueues(),
      worqr.startWork('r'),
      worqr.requestWork('q'),
      worqr.dequeue('q'),
      worqr.finishProcess(process!.id),
      worqr.stopProcess(process!.id),
      worqr.getMatchingProcesses('a'),
      worqr.failWorker('other'),
      worqr.cleanupWorkers(),
      worqr.stopWork('q'),
      make(redis.url, { timeout: 700 }).enqueue('q', 'x'),
    ];
    const settled = [...(await Promise.allSettled(calls)), ...(await Promise.allSettled([worqr.failWorker()]))];
    for (const [i, call] of settled.entries()) {
      expect(call.status, `call ${i}`).toBe('rejected');
      const { code } = (call as PromiseRejectedResult).reason as { code: string };
      expect(['STORE_UNREACHABLE', 'STORE_UNCERTAIN', 'NOT_STARTED', 'NOT_WORKING'], `call ${i}`).toContain(code);
    }
    await redis.up();
    const answers = () =>
      worqr.countQueue('q').then(
        () => true,
        () => false,
      );
    await until('the connection is back', answers);
    await worqr.startWorker();
    await worqr.startWork('q');
    await worqr.enqueue('q', 'after');
    await until('the work event from the new server arrives', () => heard.includes('work 1'));
    expect((await worqr.dequeue('q'))!.task).toBe('after');
  });

  it('closes in bounded time while Redis is down', async () => {
    const redis = await serve();
    const { worqr } = await worker(redis.url, 'q', { ...LIVELY, timeout: 500 });
    await redis.down();
    await worqr.close();
    await expect(worqr.getQueues()).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('a worker notices that its server came back empty, and can start again', async () => {
    const redis = await serve();
    const { worqr } = await worker(redis.url, 'q', { ...LIVELY, timeout: 2_000 });
    const codes: string[] = [];
    worqr.on('error', (error: { code: string }) => codes.push(error.code));
    await redis.down();
    await redis.up();
    await until('the loss is noticed', () => codes.includes('NOT_STARTED'));
    await worqr.startWorker();
    await worqr.startWork('q');
    await worqr.enqueue('q', 'a', true);
    expect((await worqr.dequeue('q'))!.task).toBe('a');
  });

  it('a dequeue whose reply was lost says so, and its task returns', async () => {
    const redis = await serve();
    const line = new Line(redis.port);
    await line.listen();
    cleanups.push(() => line.close());
    const { worqr } = await worker(`redis://127.0.0.1:${line.port}`, 'q', { ...LIVELY, timeout: 5_000 });
    await worqr.enqueue('q', ['precious', 'second']);
    line.onReply = (chunk) => {
      if (!chunk.includes('precious')) return true;
      line.onReply = () => true;
      line.cut();
      return false;
    };
    await expect(worqr.dequeue('q')).rejects.toMatchObject({ code: 'STORE_UNCERTAIN' });
    await until('the task returns', async () => (await worqr.countQueue('q')) === 2);
    expect(await worqr.getTasks('q')).toEqual(['precious', 'second']);
    const process = await worqr.dequeue('q');
    expect(process!.task).toBe('precious');
    await worqr.finishProcess(process!.id);
  });

  it('handles flushed scripts, a full server and a key of the wrong type', async () => {
    const redis = await serve();
    const { worqr } = await worker(redis.url, 'q', LIVELY);
    await worqr.enqueue('q', ['a', 'b', 'c'], true);
    await redis.client.script('FLUSH');
    const a = await worqr.dequeue('q');
    await redis.client.config('SET', 'maxmemory', '1');
    await expect(worqr.enqueue('q', 'x')).rejects.toMatchObject({ code: 'STORE_FULL' });
    await expect(worqr.enqueue('q', 'x', true)).rejects.toMatchObject({ code: 'STORE_FULL' });
    await worqr.finishProcess(a!.id);
    const b = await worqr.dequeue('q');
    await worqr.stopProcess(b!.id);
    await worqr.cancelTasks('q', 'b');
    await redis.client.config('SET', 'maxmemory', '0');
    expect(await worqr.getTasks('q')).toEqual(['c']);
    await redis.client.set('worqr:queues:odd', 'text');
    await worqr.startWork('fine');
    for (const call of [
      () => worqr.enqueue('odd', 'x', true),
      () => worqr.countQueue('odd'),
      () => worqr.startWork('odd'),
      () => worqr.cancelTasks('odd', 'x'),
      () => worqr.deleteQueue('odd'),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'STORE_CORRUPT' });
    }
    expect(await redis.client.get('worqr:queues:odd')).toBe('text');
    await worqr.stopWork('odd');
  });

  it('declares no worker dead after the server was suspended for three leases', async () => {
    const redis = await serve();
    const { worqr } = await worker(redis.url, 'q', SHORT);
    const other = await worker(redis.url, 'q', SHORT);
    await worqr.enqueue('q', ['a', 'b']);
    const [a, b] = [await worqr.dequeue('q'), await other.worqr.dequeue('q')];
    process.kill(redis.pid, 'SIGSTOP');
    const started = performance.now();
    await until('three leases have passed', () => performance.now() - started > 3_000);
    process.kill(redis.pid, 'SIGCONT');
    await worqr.finishProcess(a!.id);
    await other.worqr.finishProcess(b!.id);
    expect(await worqr.countQueue('q')).toBe(0);
    expect(await worqr.getWorkingQueues()).toEqual(['q']);
  });
});
