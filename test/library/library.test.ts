import { afterAll, beforeAll, describe, expect, expectTypeOf, inject, it } from 'vitest';
import { type Crore, Fatal, open, type Queue, type QueueOptions } from '../../dist/index.js';
import { Program } from '../support/processes.js';
import { deferred, until } from '../support/wait.js';

const URLS: [string, () => string][] = [
  ['sqlite memory', () => 'sqlite::memory:'],
  ['redis', () => `${inject('redisUrl')}?prefix=library`],
  ['postgres', () => `${inject('postgresUrl')}?schema=library`],
];

describe.each(URLS)('the library on %s', (_name, url) => {
  let crore: Crore;
  let queues = 0;
  const errors: string[] = [];

  beforeAll(async () => {
    crore = await open(url(), { onError: (error) => void errors.push(error.message), logger: false });
  });
  afterAll(() => crore.close());
  const fresh = <T, R = unknown>(options?: QueueOptions<T, T>): Queue<T, R> =>
    crore.queue<T, R, T>(`lib-${++queues}`, options);

  it('runs a job and returns its result to the caller that added it', async () => {
    const queue = fresh<{ a: number; b: number }, number>();
    queue.work(async (job) => job.payload.a + job.payload.b);
    const handle = await queue.add({ a: 2, b: 3 });
    expect(handle.outcome).toBe('created');
    const sum = await handle.finished({ timeout: '10s' });
    expectTypeOf(sum).toEqualTypeOf<number>();
    expect(sum).toBe(5);
    expect(await handle.result()).toBe(5);
    expect(await handle.state()).toBe('done');
  });

  it('passes bytes as bytes', async () => {
    const queue = fresh<Uint8Array, Uint8Array>();
    queue.work(async (job) => Uint8Array.from(job.payload).reverse());
    const all = Uint8Array.from({ length: 256 }, (_x, i) => i);
    const handle = await queue.add(all);
    expect(Buffer.from(await handle.finished({ timeout: '10s' }))).toEqual(Buffer.from(all).reverse());
  });

  it('retries a job that throws, with the backoff of the worker, until it succeeds', async () => {
    const queue = fresh<string, number>();
    const seen: number[] = [];
    queue.work(
      async (job) => {
        seen.push(job.attempt);
        if (job.attempt < 3) throw new Error('not yet');
        return job.attempt;
      },
      { backoff: (attempt) => attempt * 5 },
    );
    expect(await (await queue.add('x')).finished({ timeout: '10s' })).toBe(3);
    expect(seen).toEqual([1, 2, 3]);
  });

  it('declares a job dead after its last attempt, and immediately for Fatal', async () => {
    const queue = fresh<string>();
    queue.work(async (job) => {
      throw job.payload === 'fatal' ? new Fatal('hopeless') : new TypeError('broken');
    });
    const tired = await queue.add('x', { attempts: 2, backoff: 1 });
    const hopeless = await queue.add('fatal');
    await expect(tired.finished({ timeout: '10s' })).rejects.toMatchObject({
      code: 'JOB_DEAD',
      message: expect.stringContaining('TypeError: broken'),
    });
    await expect(hopeless.finished({ timeout: '10s' })).rejects.toMatchObject({ code: 'JOB_DEAD' });
    expect(await tired.get()).toMatchObject({ state: 'dead', attempt: 2 });
    expect(await hopeless.get()).toMatchObject({ state: 'dead', attempt: 1, error: 'Fatal: hopeless' });
    expect(await queue.retryDead()).toBe(2);
    await until('both jobs are dead again', async () => (await queue.count()).dead === 2);
  });

  it('survives anything a handler or a listener throws', async () => {
    const queue = fresh<string>();
    queue.work(
      async () => {
        throw Object.create(null);
      },
      {
        onError: () => {
          throw new Error('the listener fails, too');
        },
      },
    );
    const handle = await queue.add('x', { attempts: 1 });
    await expect(handle.finished({ timeout: '10s' })).rejects.toMatchObject({ code: 'JOB_DEAD' });
    expect((await handle.get())?.error).toContain('cannot be printed');
  });

  it('runs exactly as many handlers at once as configured', async () => {
    const queue = fresh<number>();
    let running = 0;
    let most = 0;
    await queue.addMany(Array.from({ length: 60 }, (_x, i) => ({ payload: i })));
    queue.work(
      async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setTimeout(resolve, 5));
        running -= 1;
      },
      { concurrency: 7 },
    );
    await until('all jobs are done', async () => (await queue.count()).done === 60);
    expect(most).toBe(7);
  });

  it('lets other workers have what a slow worker claimed ahead', async () => {
    const queue = fresh<string, string>();
    const release = deferred();
    const first = queue.work(async (job) => {
      if (job.payload === 'stuck') await release.promise;
      return 'first';
    });
    for (let i = 0; i < 300; i++) await queue.add('quick');
    await until('the worker is fast', async () => (await queue.count()).done >= 200);
    const rest = await queue.addMany([
      { payload: 'stuck' },
      ...Array.from({ length: 20 }, () => ({ payload: 'after' })),
    ]);
    queue.work(async () => 'second');
    const results = await Promise.all(rest.slice(1).map((handle) => handle.finished({ timeout: '20s' })));
    expect(results).toHaveLength(20);
    release.resolve();
    await rest[0]!.finished({ timeout: '10s' });
    await first.close();
  });

  it('aborts the signal of a cancelled job and ignores what its handler does afterwards', async () => {
    const queue = fresh<string>();
    const started = deferred();
    const aborted = deferred<string>();
    queue.work(async (job) => {
      job.signal.addEventListener('abort', () => aborted.resolve((job.signal.reason as { code: string }).code));
      started.resolve();
      await aborted.promise;
      return 'too late';
    });
    const handle = await queue.add('x');
    await started.promise;
    expect(await handle.cancel()).toBe(true);
    expect(await aborted.promise).toBe('LEASE_LOST');
    await expect(handle.finished({ timeout: '10s' })).rejects.toMatchObject({ code: 'JOB_CANCELLED' });
    expect(await queue.cancel(handle.id)).toBe(false);
    expect(await handle.result()).toBeUndefined();
  });

  it('aborts and retries a job that exceeds its reservation', async () => {
    const queue = fresh<string, number>();
    const reasons: string[] = [];
    queue.work(async (job) => {
      if (job.attempt > 1) return job.attempt;
      await new Promise<void>((resolve) => {
        job.signal.addEventListener('abort', () => {
          reasons.push((job.signal.reason as { code: string }).code);
          resolve();
        });
      });
      return 0;
    });
    const handle = await queue.add('x', { reservation: 60, backoff: 1 });
    expect(await handle.finished({ timeout: '10s' })).toBe(2);
    expect(reasons).toEqual(['TIMEOUT']);
  });

  it('returns an entry without charging an attempt when its handler releases it', async () => {
    const queue = fresh<string, number>();
    let deliveries = 0;
    queue.work(async (job) => {
      if (deliveries++ < 3) return job.release() as never;
      return job.attempt;
    });
    expect(await (await queue.add('x', { attempts: 1 })).finished({ timeout: '10s' })).toBe(1);
    await queue.push('task');
    await until('the raw task runs, too', () => deliveries === 5);
  });

  it('snoozes a job without charging an attempt', async () => {
    const queue = fresh<string, number>();
    let snoozes = 0;
    queue.work(async (job) => {
      if (snoozes++ < 3) return job.snooze(1) as never;
      return job.attempt;
    });
    expect(await (await queue.add('x', { attempts: 1 })).finished({ timeout: '10s' })).toBe(1);
  });

  it('shows progress and log lines of a running job', async () => {
    const queue = fresh<string>();
    const go = deferred();
    queue.work(async (job) => {
      await job.progress({ percent: 50 });
      await job.log('half way');
      await job.log('line\nbreak');
      await go.promise;
    });
    const handle = await queue.add('x', { headers: { trace: 'abc' } });
    await until('the log lines are stored', async () => (await handle.get())?.log?.length === 2);
    expect(await handle.get()).toMatchObject({
      progress: { percent: 50 },
      log: ['half way', 'line break'],
      headers: { trace: 'abc' },
    });
    expect(await handle.progress()).toEqual({ percent: 50 });
    go.resolve();
    await handle.finished({ timeout: '10s' });
  });

  it('does not start a job that has expired', async () => {
    const queue = fresh<string>();
    const handle = await queue.add('x', { expires: 1 });
    await new Promise((resolve) => setTimeout(resolve, 5)); // its expiry is on the clock of the store
    let ran = false;
    queue.work(async () => {
      ran = true;
    });
    await expect(handle.finished({ timeout: '10s' })).rejects.toMatchObject({
      code: 'JOB_CANCELLED',
      message: expect.stringContaining('expired'),
    });
    expect(ran).toBe(false);
  });

  it('runs delayed jobs on time, without a signal', async () => {
    const queue = fresh<string, number>();
    queue.work(async () => Date.now());
    const begun = Date.now();
    const handle = await queue.add('x', { delay: 80 });
    expect((await handle.finished({ timeout: '10s' })) - begun).toBeGreaterThanOrEqual(79);
  });

  it('runs a small graph in order and propagates failure', async () => {
    const queue = fresh<string>();
    const order: string[] = [];
    const a = await queue.add('a');
    const b = await queue.add('b', { needs: [a.id] });
    const c = await queue.add('c', { needs: [a.id, { id: b.id, on: 'finished' }] });
    const d = await queue.add('d', { needs: [b.id] });
    queue.work(async (job) => {
      order.push(job.payload);
      if (job.payload === 'b') throw new Fatal('b fails');
    });
    await c.finished({ timeout: '10s' });
    await expect(d.finished({ timeout: '10s' })).rejects.toMatchObject({ code: 'JOB_CANCELLED' });
    expect(order).toEqual(['a', 'b', 'c']);
  });

  it('returns typed outcomes: created, duplicate with the existing id, full', async () => {
    const queue = fresh<string>({ limits: { count: 2 } });
    const first = await queue.add('x', { unique: 'key' });
    const second = await queue.add('y', { unique: 'key' });
    expect([second.outcome, second.id]).toEqual(['duplicate', first.id]);
    await queue.add('z');
    const full = await queue.add('w');
    expect(full.outcome).toBe('full');
    await expect(full.finished()).rejects.toMatchObject({ code: 'QUEUE_FULL' });
    expect(await queue.push('task')).toBe(0);
  });

  it('delivers raw tasks as bytes, text or JSON', async () => {
    const queue = fresh<unknown>();
    const seen: unknown[] = [];
    await queue.push('{"a":1}');
    const bytes = queue.work(async (job) => void seen.push(job.payload));
    await until('the bytes are delivered', () => seen.length === 1);
    await bytes.close();
    await queue.push(Buffer.from('{"a":2}'));
    const text = queue.work(async (job) => void seen.push(job.payload), { tasks: 'text' });
    await until('the text is delivered', () => seen.length === 2);
    await text.close();
    await queue.push(['{"a":3}', 'not json']);
    queue.work(async (job) => void seen.push(job.payload), { tasks: 'json' });
    await until('the task with invalid JSON is dead', async () => (await queue.count()).dead === 1);
    expect(Buffer.from(seen[0] as Uint8Array).toString()).toBe('{"a":1}');
    expect(seen.slice(1)).toEqual(['{"a":2}', { a: 3 }]);
    const [dead] = (await queue.list('dead')).jobs;
    expect(dead).toMatchObject({ attempt: 1, error: expect.stringContaining('not JSON') });
  });

  it('pauses and resumes every worker', async () => {
    const queue = fresh<string>();
    await queue.pause();
    queue.work(async () => {});
    const handle = await queue.add('x');
    await expect(handle.finished({ timeout: 150 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect(await handle.state()).toBe('ready');
    await queue.resume();
    await handle.finished({ timeout: '10s' });
  });

  it('lets a closing worker finish what it runs, and claims no more', async () => {
    const queue = fresh<string>();
    const started = deferred();
    let ended = false;
    const worker = queue.work(async () => {
      started.resolve();
      await new Promise((resolve) => setTimeout(resolve, 50));
      ended = true;
    });
    await queue.addMany([{ payload: 'a' }, { payload: 'b' }]);
    await started.promise;
    await Promise.all([worker.close(), worker.close()]);
    expect(ended).toBe(true);
    expect(await queue.count()).toMatchObject({ done: 1, ready: 1, active: 0 });
    expect(await queue.workers()).toEqual([]);
  });

  it('validates payloads with a Standard Schema at add and before the handler', async () => {
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) =>
          typeof value === 'string' && value.startsWith('ok')
            ? { value: value.toUpperCase() }
            : { issues: [{ message: 'must start with ok', path: ['root'] }] },
      },
    };
    const queue = fresh<string, string>({ schema });
    await expect(queue.add('bad')).rejects.toMatchObject({
      code: 'BAD_PAYLOAD',
      message: expect.stringContaining('root: must start with ok'),
    });
    queue.work(async (job) => job.payload);
    expect(await (await queue.add('ok then')).finished({ timeout: '10s' })).toBe('OK THEN');
    const smuggled = await crore.queue(queue.name).add('bad');
    await expect(smuggled.finished({ timeout: '10s' })).rejects.toMatchObject({ code: 'JOB_DEAD' });
  });

  it('reports that a result is no longer kept', async () => {
    const queue = fresh<string>();
    queue.work(async () => 'x');
    const handle = await queue.add('x', { keep: { count: 0 } });
    await until('its record is deleted', async () => (await handle.state()) === undefined);
    await expect(handle.finished({ timeout: '10s' })).rejects.toMatchObject({ code: 'JOB_GONE' });
  });

  it('settles a job whose handler throws something that cannot be inspected', async () => {
    const unfriendly = new Proxy({}, { get: fail, getPrototypeOf: fail, has: fail, ownKeys: fail });
    function fail(): never {
      throw new Error('hands off');
    }
    const queue = fresh<number>();
    queue.work(() => {
      throw unfriendly;
    });
    const job = await queue.add(1, { attempts: 1 });
    await expect(job.finished({ timeout: 10_000 })).rejects.toMatchObject({ code: 'JOB_DEAD' });
  });

  it('deletes everything in a queue when obliterated, and aborts running jobs', async () => {
    const queue = fresh<string>();
    const started = deferred();
    const stopped = deferred();
    queue.work(async (job) => {
      job.signal.addEventListener('abort', () => stopped.resolve());
      started.resolve();
      await stopped.promise;
    });
    await queue.addMany([{ payload: 'a' }, { payload: 'b' }]);
    await started.promise;
    await queue.obliterate();
    await stopped.promise;
    expect(Object.values(await queue.count()).every((n) => n === 0)).toBe(true);
  });
});

describe('waiting across processes', () => {
  it.each([
    ['sqlite', async () => (await import('../support/stores.js')).freshSqlite()],
    ['redis', async () => (await import('../support/stores.js')).freshRedis()],
  ])('a result from another process arrives, on %s', async (_name, start) => {
    const store = await start();
    const crore = await open(store.url, { onError: () => {} });
    const queue = crore.queue<string, number>('across');
    const worker = new Program('worker', { url: store.url, queue: 'across', take: 20 });
    const handles = await queue.addMany(Array.from({ length: 20 }, (_x, i) => ({ payload: `p${i}` })));
    const results = await Promise.all(handles.map((handle) => handle.finished({ timeout: '20s' })));
    expect(new Set(results)).toEqual(new Set([worker.child.pid]));
    await worker.end('SIGTERM');
    await crore.close();
    await store.stop();
  });
});
