import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, expectTypeOf, inject, it } from 'vitest';
import { FailureLog } from '../../dist/engine/logging/failure-log.js';
import { type ActiveJob, type Crore, type CroreError, open, type Settled } from '../../dist/index.js';
import { DEFAULT_SPEC } from '../../dist/job/spec.js';
import { lose } from '../../dist/job/transitions.js';
import { deferred, until } from '../support/wait.js';

const URLS: [string, () => string][] = [
  ['sqlite', () => 'sqlite::memory:'],
  ['redis', () => `${inject('redisUrl')}?prefix=failures`],
];

describe.each(URLS)('what becomes of failures on %s', (name, url) => {
  let crore: Crore;
  const logged: [level: string, fields: { queue?: string; err?: Error }, message: string][] = [];
  beforeAll(async () => {
    const log = (level: string) => (fields: object, message: string) => void logged.push([level, fields, message]);
    crore = await open(url(), { logger: { warn: log('warn'), error: log('error') }, onError: () => {} });
  });
  afterAll(() => crore.close());

  it('every attempt is kept: when, where, how long, and the error with its stack', async () => {
    const queue = crore.queue<string, string>('attempts');
    function explode(): never {
      throw new RangeError('out of range\nin two lines');
    }
    const worker = queue.work(
      async (job) => {
        if (job.attempt === 1) explode();
        if (job.attempt === 2) throw 'a string';
        return 'ok';
      },
      { name: 'hostess', backoff: () => 1 },
    );
    const handle = await queue.add('x');
    await handle.finished({ timeout: '10s' });
    const { attempts, maxAttempts } = (await handle.get())!;
    expect(maxAttempts).toBe(5);
    expect(attempts.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [1, 'failed'],
      [2, 'failed'],
      [3, 'done'],
    ]);
    for (const { startedAt, endedAt, worker: where } of attempts) {
      expect(where).toBe(worker.id);
      expect(endedAt - startedAt!).toBeGreaterThanOrEqual(0);
      expect(endedAt - startedAt!).toBeLessThan(60_000);
    }
    expect(attempts[0]!.error).toMatchObject({ name: 'RangeError', message: 'out of range\nin two lines' });
    expect(attempts[0]!.error!.stack).toMatch(/explode.*failures\.test/);
    expect(attempts[1]!.error).toEqual({ name: '', message: 'a string' });
    await worker.close();
  });

  it('a raw task keeps the id that its handler saw when it becomes a job', async () => {
    const queue = crore.queue<string>('task-ids');
    const seen: [string, boolean][] = [];
    queue.work(
      async (job) => {
        seen.push([job.id, job.isTask]);
        if (seen.length === 1) throw new Error('once');
      },
      { tasks: 'text', backoff: () => 1 },
    );
    await queue.push('task');
    await until('both attempts', () => seen.length === 2);
    expect(seen).toEqual([
      [seen[0]![0], true],
      [seen[0]![0], false],
    ]);
  });

  it('a logger gets each failed attempt and each dead job, and at most ten a second', async () => {
    const queue = crore.queue('log');
    queue.work(async () => {
      throw new TypeError('broken');
    });
    logged.length = 0;
    await queue.add(1, { id: 'one', attempts: 2, backoff: 1 });
    await until('the job is dead', async () => (await queue.count()).dead === 1);
    expect(logged.map(([level, , message]) => `${level}: ${message}`)).toEqual([
      "warn: job 'one' of queue 'log' failed (attempt 1 of 2, next in 1 ms): TypeError: broken",
      "error: job 'one' of queue 'log' is dead after 2 attempts: TypeError: broken",
    ]);
    expect(logged[0]![1]).toMatchObject({ queue: 'log', id: 'one', attempt: 1, err: expect.any(TypeError) });
    await queue.addMany(Array.from({ length: 300 }, (_x, i) => ({ payload: i, attempts: 1 })));
    await until('all are dead', async () => (await queue.count()).dead === 301);
    await until('the rest is counted', () => logged.some(([, , message]) => / more attempts failed$/.test(message)));
    expect(logged.length).toBeLessThan(100);
  });

  it('a logger is told that a job whose worker was lost is back in the queue', async () => {
    const log = new FailureLog({ warn: (_fields, text) => void texts.push(text), error: () => {} });
    const texts: string[] = [];
    const spec = { ...DEFAULT_SPEC, attempts: 3 };
    const outcome = lose({ attempt: 1, crashes: 0, spec }, 3, 'w1');
    const lease = { worker: 'w1', token: 't', id: 'one' };
    log.settled('log', { id: 'one', attempt: 1, spec }, { lease, outcome, spec, priority: 0, attempt: '{}' });
    log.close();
    expect(texts).toEqual(["job 'one' of queue 'log': worker lost, back in the queue: worker w1 was lost (crash 1)"]);
  });

  it('close() aborts signals at the beginning, says that it is a shutdown, and waits for what is saved then', async () => {
    const queue = crore.queue<string, string>('shutdown');
    const saved: string[] = [];
    const started = deferred();
    const worker = queue.work(
      async (job) => {
        started.resolve();
        await new Promise<void>((resolve) => job.signal.addEventListener('abort', () => resolve()));
        const { code } = job.signal.reason as CroreError;
        await job.progress({ saved: code });
        saved.push(code);
        if (job.payload === 'give up') throw job.signal.reason;
        if (job.payload === 'fail') throw new Error('a failure of its own');
        return 'finished in time';
      },
      { concurrency: 3, grace: '20s' },
    );
    const handles = await queue.addMany(['save', 'give up', 'fail'].map((payload) => ({ payload })));
    await started.promise;
    await until('all three run', async () => (await queue.count()).active === 3);
    await worker.close();
    expect(saved).toEqual(['CLOSED', 'CLOSED', 'CLOSED']);
    const jobs = await Promise.all(handles.map((handle) => handle.get()));
    expect(jobs.map((job) => [job!.state, job!.attempt, job!.progress])).toEqual([
      ['done', 1, { saved: 'CLOSED' }],
      ['ready', 0, { saved: 'CLOSED' }],
      ['scheduled', 1, { saved: 'CLOSED' }],
    ]);
    await queue.obliterate();
  });

  it('a parent finds the results of all its children, however many there are', async () => {
    const queue = crore.queue<number | string, number>('children');
    const children = await queue.addMany(Array.from({ length: 1_500 }, (_x, i) => ({ payload: i })));
    const needs = children.map(({ id }) => ({ id, on: 'finished' as const }));
    const parent = await queue.add('sum', { needs });
    queue.work(
      async (job) => {
        if (typeof job.payload === 'number') return job.payload;
        const results = await Promise.all(children.map((child) => child.result()));
        return results.reduce<number>((sum, result) => sum + result!, 0);
      },
      { concurrency: 50 },
    );
    expect(await parent.finished({ timeout: '50s' })).toBe((1_499 * 1_500) / 2);
  });

  it('everybody who waits gets a result, however many end at once', async () => {
    const queue = crore.queue<number, number>('waiters');
    const handles = await queue.addMany(Array.from({ length: 3_000 }, (_x, i) => ({ payload: i })));
    const waiting = Promise.all(handles.map((handle) => handle.finished({ timeout: '50s' })));
    await new Promise((resolve) => setTimeout(resolve, 100)); // the waits have begun, also in the store
    queue.work(async (job) => job.payload, { concurrency: 100 });
    expect(await waiting).toEqual(handles.map((_handle, i) => i));
  });

  it('an explicit id runs once, however many others end in between', async () => {
    const queue = crore.queue<string>('once');
    const ran: string[] = [];
    queue.work(async (job) => void ran.push(job.payload), { concurrency: 100 });
    await (await queue.add('mine', { id: 'mine' })).finished({ timeout: '10s' });
    await queue.addMany(Array.from({ length: 1_100 }, () => ({ payload: 'other' })));
    await until('the others are done', () => ran.length === 1_101);
    expect((await queue.add('mine', { id: 'mine' })).outcome).toBe('duplicate');
    const short = await queue.add('short', { id: 'short', idWindow: 1, keep: { count: 0 } });
    await short.finished({ timeout: '10s' }).catch(() => {});
    await until('the id is free', async () => (await queue.add('short', { id: 'short' })).outcome === 'created');
    await expect(queue.add('x', { idWindow: '1h' })).rejects.toMatchObject({ code: 'BAD_OPTION' });
  });

  it('a handle shows itself, not the engine; a job shows what its handler may know', async () => {
    const queue = crore.queue<{ to: string }>(`shown-${name}`);
    const handle = await queue.add({ to: 'ada' }, { id: 'h' });
    expect(inspect(handle)).toBe(`Handle { queue: 'shown-${name}', id: 'h', outcome: 'created' }`);
    const shown = deferred<string>();
    queue.work(async (job) => shown.resolve(inspect(job)));
    expect(await shown.promise).toContain("payload: { to: 'ada' }");
  });

  it('waiting for a job that nobody has added says so', async () => {
    const handle = crore.queue('nothing').handle('no-such-job');
    await expect(handle.finished({ timeout: '10s' })).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('never added'),
    });
  });
});

describe('types', () => {
  it('the handler gets the output of the schema, `add` takes its input, and a result is required where one is typed', async () => {
    await using crore = await open('sqlite::memory:');
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) => ({ value: { at: new Date((value as { at: string }).at) } }),
        types: undefined as { input: { at: string }; output: { at: Date } } | undefined,
      },
    };
    const queue = crore.queue('dates', { schema });
    expectTypeOf(queue.add).parameter(0).toEqualTypeOf<{ at: string }>();
    const year = deferred<number>();
    queue.work((job) => {
      expectTypeOf(job.payload).toEqualTypeOf<{ at: Date }>();
      expectTypeOf(job.id).toEqualTypeOf<string>();
      year.resolve(job.payload.at.getUTCFullYear());
    });
    await queue.add({ at: '2026-06-01' });
    expect(await year.promise).toBe(2026);

    const typed = crore.queue<string, number>('typed');
    type Work = Parameters<typeof typed.work>[0];
    expectTypeOf<() => Promise<number>>().toExtend<Work>();
    expectTypeOf<(job: ActiveJob<string>) => Settled>().toExtend<Work>();
    expectTypeOf<() => Promise<void>>().not.toExtend<Work>();
    expectTypeOf<() => string>().not.toExtend<Work>();
  });
});

describe('odd errors', () => {
  it('are described by what lies behind them: causes, aggregated errors, objects with a message', async () => {
    await using crore = await open('sqlite::memory:', { logger: false });
    const queue = crore.queue<string>('odd');
    const thrown: Record<string, unknown> = {
      cause: new TypeError('fetch failed', {
        cause: Object.assign(new Error('connect 127.0.0.1:1'), { code: 'ECONNREFUSED' }),
      }),
      aggregate: new AggregateError([new Error('first'), new Error('second')], 'all failed'),
      object: { code: 'X', message: 'a plain object' },
      nul: new Error('a\0b'),
      stack: Object.defineProperty(new Error('no stack'), 'stack', {
        get() {
          throw new Error('nested');
        },
      }),
    };
    queue.work(async (job) => {
      await job.log('with a \0 in it');
      throw thrown[job.payload];
    });
    const errors: Record<string, string | undefined> = {};
    for (const name of Object.keys(thrown)) {
      const handle = await queue.add(name, { attempts: 1 });
      await handle.finished({ timeout: '10s' }).catch(() => {});
      const job = await handle.get();
      errors[name] = job!.error;
      expect(job!.log).toEqual(['with a \uFFFD in it']);
    }
    expect(errors).toEqual({
      cause: 'TypeError: fetch failed (caused by: ECONNREFUSED connect 127.0.0.1:1)',
      aggregate: 'AggregateError: all failed (caused by: first; second)',
      object: 'a plain object',
      nul: 'Error: a\uFFFDb',
      stack: 'Error: no stack',
    });
  });
});
