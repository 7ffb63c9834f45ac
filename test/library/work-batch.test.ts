import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import { engineOf } from '../../dist/crore.js';
import { type BatchJob, type Crore, CroreError, Fatal, open, type Queue } from '../../dist/index.js';
import { openTesting } from '../../dist/testing/index.js';
import { ALL_STORES, type TestStore } from '../support/stores.js';
import { deferred, until } from '../support/wait.js';

const payloads = (jobs: readonly BatchJob<unknown>[]) => jobs.map(({ payload }) => payload);
const numbers = (count: number) => Array.from({ length: count }, (_x, i) => ({ payload: i, id: `n${i}` }));

describe.each(ALL_STORES)('handlers that take many jobs on %s', (_name, fresh) => {
  let store: TestStore;
  let crore: Crore;
  const errors: string[] = [];
  beforeAll(async () => {
    store = await fresh();
    crore = await open(store.url, {
      logger: false,
      onError: (error, what) => void errors.push(`${what}: ${error.message}`),
    });
  });
  afterAll(async () => {
    await crore.close();
    await store.stop();
  });

  it('get full batches at once, and what is left after the wait; an array has the results in order', async () => {
    const queue = crore.queue<number, number>('sizes');
    const handles = await queue.addMany(numbers(25));
    const sizes: number[] = [];
    const began = performance.now();
    const worker = queue.workBatch(
      async (jobs) => {
        sizes.push(jobs.length);
        return jobs.map(({ payload }) => payload * 2);
      },
      { size: 10, wait: '300ms' },
    );
    expect(await handles[19]!.finished()).toBe(38);
    expect(sizes).toEqual([10, 10]);
    expect(await handles[24]!.finished()).toBe(48);
    expect(performance.now() - began).toBeGreaterThan(290);
    expect(sizes).toEqual([10, 10, 5]);
    await worker.close();
    expect(await queue.count()).toMatchObject({ done: 25, active: 0 });
  });

  it('a batch that waits for more takes what is added meanwhile, and starts as soon as it is full', async () => {
    const queue = crore.queue<number>('late');
    const seen: unknown[] = [];
    const worker = queue.workBatch((jobs) => void seen.push(payloads(jobs)), { size: 3, wait: '30s' });
    for (const n of [1, 2, 3]) {
      await queue.add(n);
      if (n < 3) await until('it is claimed', async () => (await queue.count()).active === n);
    }
    await until('the batch has run', () => seen.length > 0);
    expect(seen).toEqual([[1, 2, 3]]);
    await worker.close();
  });

  it('a worker waits longer for a batch than for handlers that are stuck', async () => {
    const queue = crore.queue<number>('patient');
    const calls: unknown[] = [];
    const worker = queue.workBatch((jobs) => void calls.push(payloads(jobs)), { size: 3, wait: '1s' });
    const handle = await queue.add(1);
    await handle.finished();
    expect(calls).toEqual([[1]]);
    expect((await handle.get())!.attempt).toBe(1);
    await worker.close();
  });

  it('by group: a batch has jobs of one group only, and those without a group are among themselves', async () => {
    const queue = crore.queue<string>('groups');
    const items = ['a', 'b', undefined].flatMap((group) =>
      [1, 2, 3].map((n) => ({ payload: `${group ?? ''}${n}`, ...(group ? { group } : {}) })),
    );
    await queue.addMany(items);
    const seen: { group: string | undefined; jobs: string[] }[] = [];
    const worker = queue.workBatch(
      (jobs) => void seen.push({ group: jobs[0]!.group, jobs: jobs.map(({ payload }) => payload) }),
      { size: 3, wait: '20ms', by: 'group', concurrency: 3 },
    );
    await until('all are done', async () => (await queue.count()).done === 9);
    await worker.close();
    for (const { group, jobs } of seen)
      expect(new Set(jobs.map((job) => job.slice(0, -1)))).toEqual(new Set([group ?? '']));
    expect(seen.flatMap(({ jobs }) => jobs).sort()).toEqual(items.map(({ payload }) => payload).sort());
    expect(seen.length).toBeLessThan(9);
  });

  it('each job ends as the handler says: a result, an error, snoozed, released', async () => {
    const queue = crore.queue<string, string>('each');
    const words = ['marked', 'fails', 'dies', 'later', 'back', 'good'];
    await queue.addMany(words.map((payload) => ({ payload, id: payload, backoff: 60_000 })));
    let calls = 0;
    const worker = queue.workBatch(
      async (jobs) => {
        calls += 1;
        return jobs.map((job) => {
          if (job.payload === 'fails') return new TypeError('not good');
          if (job.payload === 'dies') return job.fail(new Fatal('never good'));
          if (job.payload === 'later') return job.snooze('1h');
          if (job.payload === 'back' && calls === 1) return job.release();
          if (job.payload === 'marked') job.done('by hand');
          return `${job.payload}!`;
        });
      },
      { size: 6, wait: 20 },
    );
    await queue.handle('back').finished();
    await worker.close();
    const found = await Promise.all(words.map((id) => queue.get(id)));
    expect(found.map((job) => [job!.state, job!.attempt, job!.result ?? job!.error])).toEqual([
      ['done', 1, 'by hand'],
      ['scheduled', 1, 'TypeError: not good'],
      ['dead', 1, 'Fatal: never good'],
      ['scheduled', 0, undefined],
      ['done', 1, 'back!'],
      ['done', 1, 'good!'],
    ]);
  });

  it('a job that is settled before the handler ends is settled at once; if the handler throws, only the others fail', async () => {
    const queue = crore.queue<number>('partly');
    await queue.addMany(numbers(3).map((job) => ({ ...job, attempts: 1 })));
    const gate = deferred();
    const worker = queue.workBatch(
      async ([first]) => {
        first!.done();
        await gate.promise;
        throw new Error('in the middle');
      },
      { size: 3 },
    );
    await queue.handle('n0').finished();
    expect((await queue.get('n1'))!.state).toBe('active');
    gate.resolve();
    await expect(queue.handle('n1').finished()).rejects.toThrow('in the middle');
    await expect(queue.handle('n2').finished()).rejects.toThrow('in the middle');
    expect((await queue.get('n0'))!.state).toBe('done');
    await worker.close();
  });

  it('an array of promises: each job ends with its own', async () => {
    const queue = crore.queue<number, number>('promises');
    await queue.addMany(numbers(3).map((job) => ({ ...job, attempts: 1 })));
    const gate = deferred();
    const worker = queue.workBatch(
      (jobs) =>
        jobs.map(async (job) => {
          if (job.payload === 1) throw new RangeError('one');
          if (job.payload === 2) await gate.promise;
          return job.payload;
        }),
      { size: 3 },
    );
    expect(await queue.handle('n0').finished()).toBe(0);
    await expect(queue.handle('n1').finished()).rejects.toThrow('RangeError: one');
    expect((await queue.get('n2'))!.state).toBe('active');
    gate.resolve();
    expect(await queue.handle('n2').finished()).toBe(2);
    await worker.close();
  });

  it.each([
    ['too few results', () => [1], 'returned an array of 1 for 2 jobs'],
    ['too many results', () => [1, 2, Promise.reject(new Error('ignored'))], 'returned an array of 3 for 2 jobs'],
    ['something else', () => ({ a: 1 }), 'returned an object for 2 jobs'],
    ['null', () => null, 'returned null for 2 jobs'],
  ])('%s: nothing is settled by guess, all fail with BAD_RESULT', async (name, returns, message) => {
    const queue = crore.queue<number>(`wrong ${name}`);
    const handles = await queue.addMany(numbers(2).map((job) => ({ ...job, attempts: 1 })));
    const worker = queue.workBatch(async () => returns() as never, { size: 2 });
    for (const handle of handles) await expect(handle.finished()).rejects.toThrow(message);
    const { attempts } = (await handles[0]!.get())!;
    expect(attempts[0]!.error!.message).toContain(message);
    await worker.close();
  });

  it('a job cannot be settled twice', async () => {
    const queue = crore.queue<number, string>('twice');
    const handle = await queue.add(1, { id: 'one' });
    const caught: unknown[] = [];
    const worker = queue.workBatch(
      (jobs) => {
        for (const settle of [() => jobs[0]!.done('first'), () => jobs[0]!.fail('second'), () => jobs[0]!.release()]) {
          try {
            settle();
          } catch (error) {
            caught.push(error);
          }
        }
        return jobs.map(() => 'ignored');
      },
      { wait: 0 },
    );
    expect(await handle.finished()).toBe('first');
    await worker.close();
    expect(caught).toHaveLength(2);
    expect(caught[0]).toBeInstanceOf(CroreError);
    expect(caught[0]).toMatchObject({
      code: 'BAD_RESULT',
      message: "job 'one' of queue 'twice' is already settled: done",
    });
  });

  it('a reservation that ends and a cancellation concern one job: its signal is aborted, the others go on', async () => {
    const queue = crore.queue<string, string>('single');
    await queue.add('slow', { id: 'slow', reservation: 200, attempts: 1 });
    await queue.addMany(['cancelled', 'fine'].map((payload) => ({ payload, id: payload })));
    const started = deferred();
    const reasons: string[] = [];
    const worker = queue.workBatch(
      async (jobs) => {
        started.resolve();
        const stopped = jobs.filter(({ payload }) => payload !== 'fine');
        await Promise.all(
          stopped.map(
            ({ signal }) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())),
          ),
        );
        for (const { payload, signal } of jobs) reasons.push(`${payload} ${signal.reason?.code}`);
        return jobs.map(({ payload }) => payload);
      },
      { size: 3 },
    );
    await started.promise;
    await queue.cancel('cancelled');
    expect(await queue.handle('fine').finished()).toBe('fine');
    expect(reasons).toEqual(['slow TIMEOUT', 'cancelled LEASE_LOST', 'fine undefined']);
    expect(await queue.get('slow')).toMatchObject({ state: 'dead', attempt: 1 });
    expect(await queue.get('cancelled')).toMatchObject({ state: 'cancelled' });
    await queue.add('fine', { id: 'next' }); // the slot of the batch is free again
    await queue.handle('next').finished();
    await worker.close();
  });

  it('a reservation begins with the batch, not while it waits for more jobs', async () => {
    const queue = crore.queue<number>('begins');
    const handle = await queue.add(1, { reservation: 100 });
    const worker = queue.workBatch(() => {}, { size: 2, wait: 400 });
    await handle.finished(); // it would be claimed and given back again and again
    expect((await handle.get())!.attempts).toHaveLength(1);
    await worker.close();
  });

  it('a job that may have crashed its worker runs in a batch of its own', async () => {
    const queue = crore.queue<number>('suspects');
    const suspect = await queue.add(0, { id: 'n0' });
    await makeSuspect(queue, 'n0');
    await queue.addMany(numbers(6).slice(1));
    const seen: unknown[] = [];
    const worker = queue.workBatch((jobs) => void seen.push(payloads(jobs)), { size: 10, wait: 50, concurrency: 2 });
    await until('all are done', async () => (await queue.count()).done === 6);
    await worker.close();
    expect(seen[0]).toEqual([0]);
    expect(seen.flat().sort()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(seen.length).toBeLessThan(6);
    expect((await suspect.get())!.crashes).toBe(1);
  });

  it('jobs claimed together with such a job run before it, without waiting for more', async () => {
    const queue = crore.queue<number>('suspect behind');
    await queue.add(0, { id: 'n0' });
    await makeSuspect(queue, 'n0');
    await queue.addMany(
      numbers(4)
        .slice(1)
        .map((job) => ({ ...job, priority: 5 })),
    );
    const seen: unknown[] = [];
    const worker = queue.workBatch((jobs) => void seen.push(payloads(jobs)), { size: 10, wait: '1m' });
    await queue.handle('n3').finished();
    await until('the suspect has run', () => seen.flat().includes(0));
    await worker.close();
    expect(seen).toEqual([[1, 2, 3], [0]]);
  });

  /** As a sweep does with the job of a lost worker. */
  async function makeSuspect(queue: Queue<number>, id: string): Promise<void> {
    const over = deferred();
    const worker = queue.work(() => over.promise, { onError: () => {} });
    const job = await until('it runs', async () => {
      const found = await queue.get(id);
      return found?.state === 'active' ? found : undefined;
    });
    const { store: jobs } = engineOf(crore);
    const [stored] = await jobs.get(queue.name, [id]);
    await queue.pause();
    const lease = { worker: job!.worker!, token: job!.token!, id };
    const outcome = { to: 'ready', attempt: 0, crashes: 1, error: 'lost' } as const;
    expect(await jobs.settle(queue.name, [{ lease, outcome, spec: stored!.spec, priority: 0 }])).toEqual([true]);
    over.resolve();
    await worker.close();
    await queue.resume();
  }

  it('concurrency is the number of batches at once, and no more is claimed than they hold', async () => {
    const queue = crore.queue<number>('at once');
    await queue.addMany(numbers(50));
    const gate = deferred();
    let running = 0;
    const worker = queue.workBatch(
      async () => {
        running += 1;
        await gate.promise;
      },
      { size: 10, concurrency: 2, wait: 0 },
    );
    await until('two run', () => running === 2);
    expect(await queue.count()).toMatchObject({ active: 20, ready: 30 });
    const [info] = await queue.workers();
    expect(JSON.parse(info!.info)).toMatchObject({ concurrency: 20 });
    gate.resolve();
    await until('all are done', async () => (await queue.count()).done === 50);
    await worker.close();
  });

  it('close gives a batch that waits for more back at once, and waits for those that run', async () => {
    const queue = crore.queue<number>('closing');
    const worker = queue.workBatch(() => {}, { size: 10, wait: '1m', grace: '30s' });
    const handle = await queue.add(1);
    await until('it is claimed', async () => (await handle.state()) === 'active');
    const began = performance.now();
    await worker.close();
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(await handle.get()).toMatchObject({ state: 'ready', attempt: 0 });

    const started = deferred();
    const second = queue.workBatch(
      async ([job]) => {
        started.resolve();
        await new Promise<void>((resolve) => job!.signal.addEventListener('abort', () => resolve()));
        throw job!.signal.reason;
      },
      { wait: 0 },
    );
    await started.promise;
    await second.close();
    expect(await handle.get()).toMatchObject({ state: 'ready', attempt: 0 });
  });

  it('raw tasks, codecs and schemas work; what cannot be read fails alone', async () => {
    const queue = crore.queue<{ n: number }>('mixed', { schema: onlyNumbers });
    const plain = crore.queue<unknown>('mixed');
    await plain.push(['{"n":1}', '{"n":"x"}']);
    const good = await plain.add({ n: 2 });
    const bad = await plain.add({ n: 'y' });
    const seen: unknown[] = [];
    const worker = queue.workBatch(
      async (jobs) => {
        await jobs[0]!.log('seen');
        await jobs[0]!.progress(50);
        seen.push(...jobs.map(({ isTask, payload }) => [isTask, payload.n]));
      },
      { tasks: 'json', size: 4, wait: 10 },
    );
    await good.finished();
    await expect(bad.finished()).rejects.toThrow('does not match the schema');
    await until('both bad ones are dead', async () => (await queue.count()).dead === 2);
    await until('both good ones have run', () => seen.length === 2);
    expect(seen.sort()).toEqual([
      [false, 2],
      [true, 1],
    ]);
    await worker.close();
  });

  it('a job that is cancelled while its payload is checked does not reach the handler', async () => {
    const gate = deferred();
    const queue = crore.queue<{ n: number }>('checked', { schema: { '~standard': { ...slow(gate.promise) } } });
    const plain = crore.queue<{ n: number }>('checked');
    await plain.addMany([1, 2].map((n) => ({ payload: { n }, id: `n${n}` })));
    const seen: unknown[] = [];
    const worker = queue.workBatch((jobs) => void seen.push(...jobs.map(({ id }) => id)), { size: 2 });
    await until('both are claimed', async () => (await queue.count()).active === 2);
    const stopped = engineOf(crore).store;
    await new Promise<void>((resolve) => {
      const unsubscribe = stopped.subscribe('checked', (signal) => {
        if (signal.type === 'cancelled') setImmediate(() => resolve(unsubscribe()));
      });
      void queue.cancel('n1');
    });
    gate.resolve();
    await queue.handle('n2').finished();
    await worker.close();
    expect(seen).toEqual(['n2']);
  });

  it('middleware runs around each batch, and listeners hear of each job', async () => {
    const queue = crore.queue<number, string>('hooks');
    const heard: string[] = [];
    await queue.addMany(numbers(3).map((job) => ({ ...job, attempts: 1 })));
    const worker = queue.workBatch((jobs) => jobs.map(({ payload }) => (payload === 1 ? new Error('odd') : 'even')), {
      size: 3,
      wait: 0,
    });
    worker
      .use(async (jobs, next) => {
        heard.push(`before ${jobs.length}`);
        const results = await next();
        heard.push(`after ${(results as unknown[]).length}`);
        return results;
      })
      .on('completed', (job, result) => void heard.push(`completed ${job.id} ${result}`))
      .on('dead', (job, error) => void heard.push(`dead ${job.id} ${(error as Error).message}`))
      .on('drained', () => void heard.push('drained'));
    await until('it is drained', () => heard.includes('drained'));
    await worker.close();
    expect(heard.slice(0, 2)).toEqual(['before 3', 'after 3']);
    expect(heard.slice(2, 5).sort()).toEqual(['completed n0 even', 'completed n2 even', 'dead n1 odd']);
    expect(await crore.metrics()).toMatch(/crore_run_seconds_count\{queue="hooks"\} 3/);
  });

  it('bad input is named at once', () => {
    const queue = crore.queue('bad');
    const attempt =
      (options: object, handler: unknown = () => {}) =>
      () =>
        queue.workBatch(handler as () => void, options as never);
    expect(attempt({}, 'x')).toThrow("workBatch needs a function as handler, not 'x'");
    expect(attempt({}, new URL('file:///handler.js'))).toThrow('workBatch needs a function as handler');
    expect(attempt({ size: 0 })).toThrow('size must be a whole number, 1 to 1000, not 0');
    expect(attempt({ wait: 'soon' })).toThrow('wait');
    expect(attempt({ wait: '2m' })).toThrow('wait must be at most 60000 ms, not 120000');
    expect(attempt({ by: 'id' })).toThrow("by must be one of group, not 'id'");
    expect(attempt({ sizes: 3 })).toThrow("workBatch: unknown option 'sizes'");
    expect(attempt({ processes: 3 })).toThrow("workBatch: unknown option 'processes'");
    expect(attempt({ size: 1_000, concurrency: 1_000 })).toThrow('size × concurrency must be at most 100000');
  });

  it('what a handler returns is checked by the types', async () => {
    const queue = crore.queue<{ to: string }, number>('types');
    const unused = () => {
      queue.workBatch((jobs) => {
        expectTypeOf(jobs).toEqualTypeOf<BatchJob<{ to: string }, number>[]>();
        expectTypeOf(jobs[0]!.payload.to).toEqualTypeOf<string>();
        // @ts-expect-error the result is a number
        jobs[0]!.done('x');
        // @ts-expect-error the result is missing
        jobs[0]!.done();
        return [1, new Error('no'), jobs[0]!.snooze('1m'), Promise.resolve(2), jobs[1]!.done(3)];
      });
      // @ts-expect-error results are numbers
      queue.workBatch(async (jobs) => jobs.map(() => 'x'));
      // @ts-expect-error every job has a result
      queue.workBatch(async () => {});
      crore.queue<string, void>('none').workBatch(async ([job]) => void job!.done());
      queue.workBatch(() => [1]).use(async (jobs, next) => (jobs[0]?.payload.to ? next() : []));
    };
    expect(unused).toBeTypeOf('function');
  });
});

/** Accepts everything, once the promise is resolved. */
function slow(promise: Promise<void>) {
  return {
    version: 1 as const,
    vendor: 'test',
    validate: (value: unknown) => promise.then(() => ({ value: value as { n: number } })),
  };
}

/** A Standard Schema for `{ n: number }`, asynchronous for texts. */
const onlyNumbers = {
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    validate: (value: unknown) => {
      const { n } = value as { n: unknown };
      return typeof n === 'number'
        ? { value: { n } }
        : Promise.resolve({ issues: [{ message: 'not a number', path: ['n'] }] });
    },
    types: undefined as unknown as { input: { n: number }; output: { n: number } },
  },
};

describe('handlers that take many jobs, with the testing kit', () => {
  it('a killed worker loses its batch, and each of its jobs runs alone afterwards', async () => {
    await using kit = await openTesting();
    const queue = kit.crore.queue<number>('batches');
    await queue.addMany(numbers(3));
    const worker = queue.workBatch(() => new Promise<void>(() => {}), { size: 3, wait: 0 });
    await until('all run', async () => (await queue.count()).active === 3);
    await kit.kill(worker);
    const seen: unknown[] = [];
    queue.workBatch((jobs) => void seen.push(payloads(jobs)), { size: 3, wait: 0 });
    await kit.advance('1m');
    await kit.drain();
    expect(seen).toEqual([[0], [1], [2]]);
  });
});
