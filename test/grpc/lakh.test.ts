import { Metadata, status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { freshRedis } from '../support/stores.js';
import { until } from '../support/wait.js';
import { Lakh, refused, seconds } from './support/lakh.js';
import { startServer, type TestServer } from './support/server.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(options: Parameters<typeof startServer>[0] = {}): Promise<TestServer> {
  const server = await startServer({ grace: 200, ...options });
  cleanups.push(() => server.close());
  return server;
}

function dial(server: TestServer): Lakh {
  const lakh = new Lakh(server.address);
  cleanups.push(() => lakh.close());
  return lakh;
}

const stateOf = async ({ store }: TestServer, queue: string, id: string) => (await store.get(queue, [id]))[0]?.state;
const reservation_time = seconds(60);

describe('lakh: producers', () => {
  it('replies once every job is durable, with the payload as a JSON array of strings', async () => {
    const server = await serve();
    await dial(server).work('mail;sms', [
      { id: 'a', name: 'mail', args: ['x', 'é"\n'], reservation_time },
      { name: 'sms' },
      { id: 'b', name: 'mail', args: [] },
    ]);
    const [job] = await server.store.get('mail', ['a']);
    expect(job).toMatchObject({
      state: 'ready',
      payload: '["x","é\\"\\n"]',
      spec: { attempts: 30, reservation: 60_000 },
    });
    expect((await server.store.count('mail')).ready).toBe(2);
    expect((await server.store.count('sms')).ready).toBe(1);
  });

  it('accepts thousands of jobs in one stream, in order', async () => {
    const server = await serve();
    const jobs = Array.from({ length: 5_000 }, (_x, i) => ({ id: `j${i}`, name: 'many', args: [String(i)] }));
    await dial(server).work('many', jobs);
    expect((await server.store.count('many')).ready).toBe(5_000);
    const page = await server.store.list('many', { state: 'ready', limit: 3 });
    expect(page.jobs.map(({ id }) => id)).toEqual(['j0', 'j1', 'j2']);
  });

  it.each([[undefined], [''], [';;']])('refuses job_names %j', async (names) => {
    const server = await serve();
    const lakh = dial(server);
    const error = await refused(lakh.work(names, [{ name: 'a' }]));
    expect(error).toMatchObject({ code: status.INVALID_ARGUMENT });
    expect(error.details).toContain('job_names');
    const worker = lakh.join(names);
    expect(await worker.ended()).toMatchObject({ code: status.INVALID_ARGUMENT });
  });

  it.each([
    ['a name that was not announced', { id: 'bad', name: 'other' }, 'other'],
    ['no name', { id: 'bad' }, 'no name'],
    ['an impossible delay', { id: 'bad', name: 'q', delayed: { seconds: 1, nanos: -1 } }, 'delayed'],
    ['an endless delay', { id: 'bad', name: 'q', delayed: { seconds: 400_000_000_000 } }, 'delayed'],
    ['an impossible time', { id: 'bad', name: 'q', scheduled: { seconds: 1, nanos: 2e9 } }, 'scheduled'],
    ['a negative reservation', { id: 'bad', name: 'q', reservation_time: { seconds: -1, nanos: 0 } }, 'reservation'],
  ])('ends the stream at %s; earlier jobs stay accepted', async (_what, bad, word) => {
    const server = await serve();
    const error = await refused(
      dial(server).work('q', [{ id: '1', name: 'q' }, { id: '2', name: 'q' }, bad, { name: 'q' }]),
    );
    expect(error.code).toBe(status.INVALID_ARGUMENT);
    expect(error.details).toContain("'bad'");
    expect(error.details).toContain(word);
    expect(error.details).toContain('2 jobs');
    expect((await server.store.count('q')).ready).toBe(2);
  });

  it('accepts a repeated id once while its job is alive, and again after that has ended', async () => {
    const server = await serve();
    const lakh = dial(server);
    const job = { id: 'same', name: 'q', args: ['1'] };
    await lakh.work('q', [job, job]);
    await lakh.work('q', [job]);
    expect((await server.store.count('q')).ready).toBe(1);
    const worker = lakh.join('q');
    await worker.got(1);
    await until('the job to be done', async () => (await stateOf(server, 'q', 'same')) === 'done');
    await lakh.work('q', [job]);
    await worker.got(2);
  });

  it('runs jobs at their time: immediately if it is in the past', async () => {
    let now = Date.now();
    const server = await serve({ clock: () => now });
    const lakh = dial(server);
    await lakh.work('q', [
      { id: 'delayed', name: 'q', delayed: seconds(60) },
      { id: 'scheduled', name: 'q', scheduled: seconds(Math.ceil(now / 1_000) + 120) },
      { id: 'past', name: 'q', scheduled: seconds(5) },
      { id: 'negative', name: 'q', delayed: { seconds: -5, nanos: 0 } },
      { id: 'now', name: 'q', immediate: {} },
    ]);
    const worker = lakh.join('q');
    await worker.got(3);
    expect(worker.jobs.map(({ id }) => id)).toEqual(['past', 'negative', 'now']);
    now += 61_000;
    await worker.got(4);
    now += 61_000;
    await worker.got(5);
    expect(worker.jobs.slice(3).map(({ id }) => id)).toEqual(['delayed', 'scheduled']);
  });
});

describe('lakh: reservation, reports, retries', () => {
  it('a job without a reservation is done as soon as it is sent; reports are ignored', async () => {
    const server = await serve();
    const lakh = dial(server);
    await lakh.work('q', [{ id: 'a', name: 'q' }]);
    const worker = lakh.join('q');
    await worker.got(1);
    await until('the job to be done', async () => (await stateOf(server, 'q', 'a')) === 'done');
    worker.report({ id: 'a', name: 'q' }, 'FAILED');
    worker.report({ id: 'nobody', name: 'q' }, 'FAILED');
    worker.report({ id: 'a', name: 'elsewhere' }, 'SUCCEEDED');
    worker.stream.end();
    expect(await worker.ended()).toMatchObject({ code: status.OK });
    expect(await stateOf(server, 'q', 'a')).toBe('done');
    expect(await server.store.queues()).toEqual(['q']);
  });

  it('a report of success ends the job', async () => {
    const server = await serve();
    const lakh = dial(server);
    await lakh.work('q', [{ id: 'a', name: 'q', reservation_time }]);
    const worker = lakh.join('q');
    worker.answer = () => 'SUCCEEDED';
    await until('the job to be done', async () => (await stateOf(server, 'q', 'a')) === 'done');
    expect(worker.jobs[0]).toMatchObject({ id: 'a', name: 'q', reservation_time: { seconds: 60, nanos: 0 } });
  });

  it('a report of failure schedules a retry on the backoff curve, and the first report wins', async () => {
    let now = 1_800_000_000_000;
    const server = await serve({ clock: () => now, random: () => 0.5 });
    const lakh = dial(server);
    await lakh.work('q', [{ id: 'a', name: 'q', reservation_time }]);
    const worker = lakh.join('q');
    for (const count of [1, 2, 3]) {
      await worker.got(count);
      worker.report({ id: 'a', name: 'q' }, 'FAILED');
      worker.report({ id: 'a', name: 'q' }, 'SUCCEEDED');
      await until('the job to be scheduled', async () => (await stateOf(server, 'q', 'a')) === 'scheduled');
      const [job] = await server.store.get('q', ['a']);
      expect(job).toMatchObject({ attempt: count, answered: true });
      // 15 + count^4 + rand(30) * (count + 1), in seconds
      expect(job!.runAt! - now).toBe((15 + count ** 4 + 15 * (count + 1)) * 1_000);
      now = job!.runAt!;
    }
  });

  it('no report within the reservation is a failure; a late success still counts', async () => {
    const server = await serve();
    const lakh = dial(server);
    await lakh.work('q', [{ id: 'a', name: 'q', reservation_time: { seconds: 0, nanos: 50_000_000 } }]);
    const worker = lakh.join('q');
    await worker.got(1);
    await until('the reservation to end', async () => (await stateOf(server, 'q', 'a')) === 'scheduled');
    expect((await server.store.get('q', ['a']))[0]!.error).toContain('reservation of 50 ms');
    worker.report({ id: 'a', name: 'q' }, 'FAILED');
    worker.report({ id: 'a', name: 'q' }, 'SUCCEEDED');
    await until('the job to be done', async () => (await stateOf(server, 'q', 'a')) === 'done');
  });

  it('the first report wins, whichever worker sends it', async () => {
    const server = await serve({ lakh: { maxRetry: 30, backoff: { kind: 'fixed', delay: 0 } } });
    const lakh = dial(server);
    await lakh.work('q', [{ id: 'a', name: 'q', reservation_time: seconds(0.1) }]);
    const slow = lakh.join('q');
    await slow.got(1);
    await until('the job to be sent again', () => slow.jobs.length >= 2);
    const other = lakh.join('q;r');
    await other.joined();
    other.report({ id: 'a', name: 'q' }, 'SUCCEEDED');
    await until('the job to be done', async () => (await stateOf(server, 'q', 'a')) === 'done');
    slow.report({ id: 'a', name: 'q' }, 'FAILED');
    await lakh.work('q', [{ id: 'fence', name: 'q' }]);
    expect(await stateOf(server, 'q', 'a')).toBe('done');
  });

  it('a job is dead after its last attempt and listed, newest first', async () => {
    const server = await serve({ lakh: { maxRetry: 2, backoff: { kind: 'fixed', delay: 0 } } });
    const lakh = dial(server);
    const worker = lakh.join('q;r');
    worker.answer = () => 'FAILED';
    for (const [id, name] of [
      ['a', 'q'],
      ['b', 'r'],
      ['c', 'q'],
    ] as const) {
      await lakh.work('q;r', [{ id, name, args: [`${id}1`, `${id}2`], reservation_time }]);
      await until('the job to be dead', async () => (await stateOf(server, name, id)) === 'dead');
      await new Promise((resolve) => setTimeout(resolve, 2)); // the next one must not die in the same millisecond
    }
    expect(worker.jobs).toHaveLength(6);
    const { jobs } = await lakh.dead();
    expect(jobs.map(({ id, name, args }) => [id, name, ...args])).toEqual([
      ['c', 'q', 'c1', 'c2'],
      ['b', 'r', 'b1', 'b2'],
      ['a', 'q', 'a1', 'a2'],
    ]);
  });

  it('the list has as many dead jobs as fit in a message of 4 MB', async () => {
    const server = await serve({ lakh: { maxRetry: 1, backoff: { kind: 'fixed', delay: 0 } } });
    const lakh = dial(server);
    const worker = lakh.join('q');
    worker.answer = () => 'FAILED';
    const big = 'x'.repeat(900_000);
    for (let i = 0; i < 6; i++) await lakh.work('q', [{ id: `j${i}`, name: 'q', args: [big], reservation_time }]);
    await until('all jobs to be dead', async () => (await server.store.count('q')).dead === 6);
    expect((await lakh.dead()).jobs).toHaveLength(4);
  });
});

describe('lakh: workers', () => {
  it('a missing worker is no failure, nor is one that left before the job was sent', async () => {
    const server = await serve();
    const lakh = dial(server);
    const gone = lakh.join('q');
    await gone.joined();
    gone.stream.cancel();
    await gone.ended();
    await lakh.work('q', [{ id: 'a', name: 'q', reservation_time }]);
    expect((await server.store.get('q', ['a']))[0]).toMatchObject({ state: 'ready', attempt: 0 });
    const worker = lakh.join('q');
    await worker.got(1);
  });

  it('sends a worker one job with a reservation at first, and more as it reports', async () => {
    const server = await serve();
    const lakh = dial(server);
    await lakh.work(
      'q',
      Array.from({ length: 200 }, (_x, i) => ({ id: `${i}`, name: 'q', reservation_time: seconds(3_600) })),
    );
    const worker = lakh.join('q');
    await worker.got(1);
    const other = lakh.join('q');
    await other.got(1);
    // Both have only one unreported job: all others wait in the store.
    expect((await server.store.count('q')).active).toBe(2);
    worker.answer = () => 'SUCCEEDED';
    worker.report(worker.jobs[0]!, 'SUCCEEDED');
    await until('the rest to be done', async () => (await server.store.count('q')).done === 199);
    expect(other.jobs).toHaveLength(1);
  });

  it('sends jobs with their requested time, and lists dead ones with it', async () => {
    const server = await serve({
      lakh: { maxRetry: 1, backoff: { kind: 'quartic', base: 0, jitter: 0, cap: 0 } },
    });
    const lakh = dial(server);
    const delayed = { seconds: 0, nanos: 20_000_001 };
    const scheduled = { seconds: 1_600_000_000, nanos: 5 };
    await lakh.work('q', [
      { id: 'now', name: 'q', immediate: {}, reservation_time },
      { id: 'later', name: 'q', delayed, reservation_time },
      { id: 'fixed', name: 'q', scheduled, reservation_time },
      { id: 'before', name: 'q', delayed: { seconds: -3, nanos: 0 }, reservation_time },
    ]);
    const worker = lakh.join('q');
    worker.answer = () => 'FAILED';
    await worker.got(4);
    const times = (jobs: readonly object[]) =>
      Object.fromEntries((jobs as Record<string, unknown>[]).map((job) => [job.id, job[String(job.execution_time)]]));
    const wanted = { now: {}, later: delayed, fixed: scheduled, before: { seconds: -3, nanos: 0 } };
    expect(times(worker.jobs)).toEqual(wanted);
    const dead = await until('all jobs to be dead', async () => {
      const { jobs } = await lakh.dead();
      return jobs.length === 4 && jobs;
    });
    expect(times(dead as object[])).toEqual(wanted);
  });

  it('accepts the names of all job_names entries', async () => {
    const server = await serve();
    const lakh = dial(server);
    const metadata = new Metadata();
    for (const name of ['a', 'b;c', 'with, comma']) metadata.add('job_names', name);
    lakh.metadata = () => metadata;
    await lakh.work(
      '',
      ['a', 'b', 'c', 'with, comma'].map((name) => ({ id: '1', name })),
    );
    const worker = lakh.join('');
    await worker.got(4);
    expect(worker.jobs.map(({ name }) => name).sort()).toEqual(['a', 'b', 'c', 'with, comma']);
  });

  it('accepts many metadata entries; too many bytes end the call but not the connection', async () => {
    const server = await serve();
    const lakh = dial(server);
    const metadata = lakh.metadata('q');
    for (let i = 0; i < 500; i++) metadata.set(`entry-${i}`, 'x');
    lakh.metadata = () => metadata;
    await lakh.work('q', [{ name: 'q' }]);
    for (const size of [65_400, 66_000]) {
      metadata.set('large', 'x'.repeat(size));
      expect((await refused(lakh.work('q', [{ name: 'q' }]))).code).toBe(status.RESOURCE_EXHAUSTED);
    }
    metadata.remove('large');
    await lakh.work('q', [{ name: 'q' }]);
  });

  it('distributes jobs without reservation over the workers', async () => {
    const server = await serve();
    const lakh = dial(server);
    const workers = [lakh.join('q'), lakh.join('q'), lakh.join('q;r')];
    for (const worker of workers) await worker.joined();
    for (let i = 0; i < 40; i++) await lakh.work('q', [{ name: 'q' }, { name: 'q' }, { name: 'q' }]);
    await until('all jobs to arrive', () => workers.reduce((sum, one) => sum + one.jobs.length, 0) === 120);
    for (const worker of workers) expect(worker.jobs.length).toBeGreaterThan(20);
  });

  it('serves every name a worker offers, even if one has a backlog', async () => {
    const server = await serve();
    const lakh = dial(server);
    const reserved = (name: string, n: number) =>
      Array.from({ length: n }, () => ({ name, reservation_time: seconds(3_600) }));
    await lakh.work('big;small', [...reserved('big', 500), ...reserved('small', 5)]);
    const worker = lakh.join('big;small');
    worker.answer = () => 'SUCCEEDED';
    await worker.got(505);
    const last = worker.jobs.findLastIndex(({ name }) => name === 'small');
    expect(last).toBeLessThan(300);
  });

  it('a worker that closes its stream gets no more jobs and its reports are stored', async () => {
    const server = await serve();
    const lakh = dial(server);
    await lakh.work('q', [{ id: 'a', name: 'q', reservation_time }]);
    const worker = lakh.join('q');
    await worker.got(1);
    worker.report(worker.jobs[0]!, 'SUCCEEDED');
    worker.stream.end();
    expect(await worker.ended()).toMatchObject({ code: status.OK });
    expect(await stateOf(server, 'q', 'a')).toBe('done');
    await until('the session to end', async () => (await server.store.workers('q')).length === 0);
  });

  it('sends jobs that were added through other interfaces', async () => {
    const server = await serve();
    await server.store.push('q', [Buffer.from('raw bytes')]);
    const worker = dial(server).join('q');
    await worker.got(1);
    expect(worker.jobs[0]).toMatchObject({ name: 'q', args: ['raw bytes'] });
    await until('the job to be settled', async () => (await server.store.count('q')).active === 0);
  });
});

describe('lakh: several servers on one Redis', () => {
  it('producers, workers and reports may use different servers', async () => {
    const redis = await freshRedis();
    cleanups.push(() => redis.stop());
    const [one, two] = [await serve({ url: redis.url }), await serve({ url: redis.url })];
    const worker = dial(two).join('q');
    await worker.joined();
    await dial(one).work('q', [{ id: 'a', name: 'q', args: ['1'], reservation_time }]);
    await worker.got(1);
    const elsewhere = dial(one).join('q;r');
    await elsewhere.joined();
    elsewhere.report({ id: 'a', name: 'q' }, 'SUCCEEDED');
    await until('the job to be done', async () => (await stateOf(one, 'q', 'a')) === 'done');
  });

  it('a lease outlives its server: only the end of the reservation is a failure', async () => {
    const redis = await freshRedis();
    cleanups.push(() => redis.stop());
    const one = await startServer({ url: redis.url, grace: 0 });
    const worker = new Lakh(one.address);
    cleanups.push(() => worker.close());
    await worker.work('q', [{ id: 'a', name: 'q', reservation_time }]);
    await worker.join('q').got(1);
    await one.close();
    const two = await serve({ url: redis.url });
    const back = dial(two).join('q');
    await back.joined();
    expect(await stateOf(two, 'q', 'a')).toBe('active');
    back.report({ id: 'a', name: 'q' }, 'SUCCEEDED');
    await until('the job to be done', async () => (await stateOf(two, 'q', 'a')) === 'done');
  });
});
