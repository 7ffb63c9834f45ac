import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CroreError, Fatal } from '../../dist/index.js';
import { openOutbox, relay } from '../../dist/outbox/index.js';
import { openTesting, type Step, type Testing } from '../../dist/testing/index.js';
import { openApp, transaction } from '../support/sqlite.js';
import { deferred } from '../support/wait.js';

const HOUR = 3_600_000;

describe('the testing kit', () => {
  let kit: Testing;

  beforeEach(async () => {
    kit = await openTesting({ patience: '10s' });
  });
  afterEach(() => kit.close());

  it('runs jobs with the real engine, and drains queues', async () => {
    const queue = kit.crore.queue<number, number>('sums');
    queue.work(async ({ payload }) => payload * 2, { concurrency: 3 });
    const handles = await queue.addMany([1, 2, 3, 4].map((payload) => ({ payload })));
    await kit.drain();
    expect(await Promise.all(handles.map((handle) => handle.result()))).toEqual([2, 4, 6, 8]);
    expect((await kit.inspect('sums')).counts).toMatchObject({ done: 4, ready: 0, active: 0 });
    expect(kit.errors).toEqual([]);
  });

  it('waits for handlers that wait for real I/O', async () => {
    const queue = kit.crore.queue<string, string>('real');
    queue.work(async () => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      return 'done';
    });
    const handle = await queue.add('x', { delay: '1m' });
    await kit.advance('1m');
    expect(await handle.result()).toBe('done');
  });

  it('holds delayed jobs until exactly their time, without real time passing', async () => {
    const queue = kit.crore.queue<string>('late');
    const ran: [string, number][] = [];
    queue.work(async ({ payload }) => void ran.push([payload, kit.now]));
    const start = kit.now;
    await queue.add('month', { delay: '30d' });
    await queue.add('hour', { delay: '1h' });
    await kit.advance(HOUR - 1);
    expect(ran).toEqual([]);
    await kit.advance(1);
    expect(ran).toEqual([['hour', start + HOUR]]);
    await kit.advance('40d');
    expect(ran).toEqual([
      ['hour', start + HOUR],
      ['month', start + 30 * 24 * HOUR],
    ]);
    expect(kit.now).toBe(start + HOUR + 40 * 24 * HOUR);
  });

  it('retries with backoff, each attempt exactly on time, deterministic for a seed', async () => {
    const history = async (seed: number) => {
      const own = await openTesting({ seed, patience: '10s' });
      const queue = own.crore.queue<string>('retries');
      const at: number[] = [];
      queue.work(async () => {
        at.push(own.now);
        throw new Error('no');
      });
      const handle = await queue.add('x', { attempts: 5, backoff: { kind: 'exponential', delay: '1s', jitter: 0.5 } });
      await own.advance('1h');
      expect(await handle.state()).toBe('dead');
      await own.close();
      return at.map((time) => time - at[0]!);
    };
    const first = await history(7);
    expect(first).toHaveLength(5);
    expect(first[4]).toBeGreaterThan(5_000);
    expect(await history(7)).toEqual(first);
    expect(await history(8)).not.toEqual(first);
  });

  const steps: [Step, { ran: number; crashes: number; state: string }][] = [
    ['claimed', { ran: 1, crashes: 1, state: 'done' }],
    ['running', { ran: 2, crashes: 1, state: 'done' }],
    ['settling', { ran: 2, crashes: 1, state: 'done' }],
    ['settled', { ran: 1, crashes: 0, state: 'done' }],
  ];
  it.each(steps)('kills a worker at the step: %s', async (at, { ran, crashes, state }) => {
    const queue = kit.crore.queue<string>('crash');
    const runs: string[] = [];
    const worker = (name: string) => queue.work(async () => void runs.push(name), { name });
    const death = kit.kill(worker('first'), { at });
    const handle = await queue.add('x');
    expect(await death).toBe(true);
    await kit.drain();
    worker('second');
    await kit.advance('9s');
    expect(await handle.state()).toBe(at === 'settled' ? 'done' : 'active');
    await kit.advance('2s');
    expect(await handle.get()).toMatchObject({ state, crashes });
    expect(runs).toHaveLength(ran);
    expect(runs.at(-1)).toBe(at === 'settled' ? 'first' : 'second');
    expect(kit.errors).toEqual([]);
  });

  it('kills immediately: the running handler is aborted and its return value is ignored', async () => {
    const queue = kit.crore.queue<string, string>('now');
    const started = deferred<AbortSignal>();
    const release = deferred();
    const worker = queue.work(async ({ signal }) => {
      started.resolve(signal);
      await release.promise;
      return 'from the grave';
    });
    const handle = await queue.add('x');
    const signal = await started.promise;
    expect(await kit.kill(worker)).toBe(true);
    expect(signal.aborted).toBe(true);
    release.resolve();
    await kit.drain();
    expect((await kit.inspect('now')).workers).toMatchObject([{ id: worker.id, killed: true, holds: 1 }]);
    queue.work(async () => 'from the living');
    await kit.advance('1m');
    expect(await handle.result()).toBe('from the living');
  });

  it('declares a job dead that kills its workers, and completes the jobs next to it', async () => {
    const queue = kit.crore.queue<string>('poison');
    const handles = await queue.addMany([{ payload: 'poison' }, { payload: 'good' }, { payload: 'fine' }]);
    for (let i = 0; i < 3; i++) {
      const worker = queue.work(async () => {});
      expect(await kit.kill(worker, { at: 'running' })).toBe(true);
      await kit.advance('30s');
    }
    expect(await handles[0]!.get()).toMatchObject({ state: 'dead', crashes: 3 });
    queue.work(async () => {});
    await kit.drain();
    expect(await handles[1]!.state()).toBe('done');
    expect(await handles[2]!.state()).toBe('done');
  });

  it('respects the maxCrashes of a worker', async () => {
    const queue = kit.crore.queue<string>('fragile');
    const handle = await queue.add('x');
    await kit.kill(
      queue.work(async () => {}, { maxCrashes: 1 }),
      { at: 'running' },
    );
    queue.work(async () => {}, { maxCrashes: 1 });
    await kit.advance('30s');
    expect(await handle.get()).toMatchObject({ state: 'dead', crashes: 1 });
  });

  it('does not declare live workers dead, however far the clock is moved', async () => {
    const queue = kit.crore.queue<string, string>('alive');
    queue.work(async () => {
      await kit.sleep('300d');
      return 'still here';
    });
    const handle = await queue.add('x');
    await kit.advance('299d');
    expect(await handle.get()).toMatchObject({ state: 'active', attempt: 1, crashes: 0 });
    await kit.advance('1d');
    expect(await handle.result()).toBe('still here');
    await kit.advance('2h');
    expect(await handle.get()).toBeUndefined(); // done, and kept for an hour at most
    expect(kit.errors).toEqual([]);
  });

  it('lets handlers sleep on its clock', async () => {
    const queue = kit.crore.queue<string, number>('sleepy');
    queue.work(async ({ signal }) => {
      await kit.sleep('5m', { signal });
      return kit.now;
    });
    const start = kit.now;
    const handle = await queue.add('x');
    await kit.advance('299s');
    expect(await handle.state()).toBe('active');
    await expect(kit.drain('sleepy')).rejects.toMatchObject({
      code: 'TIMEOUT',
      message: expect.stringContaining('sleep'),
    });
    await kit.advance('1s');
    expect(await handle.result()).toBe(start + 300_000);
  });

  it('ends a reservation: the handler is aborted and the attempt fails', async () => {
    const queue = kit.crore.queue<string, string>('reserved');
    const aborted: string[] = [];
    queue.work(async (job) => {
      if (job.attempt === 2) return 'second';
      await kit.sleep('1h', { signal: job.signal }).catch(() => aborted.push('first'));
      return 'first';
    });
    const handle = await queue.add('x', { reservation: '10m', backoff: '1s' });
    await kit.advance('9m');
    expect(await handle.state()).toBe('active');
    await kit.advance('2m');
    expect(await handle.get()).toMatchObject({ state: 'done', result: 'second', attempt: 2 });
    expect(aborted).toEqual(['first']);
  });

  it('applies unique keys, dependencies and expiry on its own clock', async () => {
    const queue = kit.crore.queue<string>('asked');
    const one = await queue.add('one', { unique: { key: 'k', scope: 'window', ttl: '1h' } });
    expect((await queue.add('two', { unique: 'k' })).outcome).toBe('duplicate');
    const after = await queue.add('after', { needs: [one.id] });
    const stale = await queue.add('stale', { expires: '5m', delay: '4m' });
    await kit.advance('10m');
    expect(await after.state()).toBe('blocked');
    queue.work(async () => {});
    await kit.drain();
    expect(await after.state()).toBe('done');
    expect(await stale.state()).toBe('cancelled');
    await kit.advance('50m');
    expect((await queue.add('three', { unique: 'k' })).outcome).toBe('created');
  });

  it('fires schedules, each tick exactly on time', async () => {
    const at: number[] = [];
    kit.crore.queue('nightly').work(async () => void at.push(kit.now));
    await kit.crore.schedule('report', '0 4 * * *', { queue: 'nightly' }, { timezone: 'UTC' });
    await kit.advance('4h');
    expect(at.map((time) => new Date(time).toISOString())).toEqual(['2030-01-01T04:00:00.000Z']);
    await kit.advance('7d');
    expect(at).toHaveLength(8);
    expect(kit.now - at.at(-1)!).toBe(0);
  });

  it('respects the limits of a queue', async () => {
    const queue = kit.crore.queue<number>('paced');
    await queue.setLimits({ rate: { count: 2, per: '1m' } });
    const at: number[] = [];
    queue.work(async () => void at.push(kit.now), { concurrency: 5 });
    const start = kit.now;
    await queue.addMany([1, 2, 3, 4, 5].map((payload) => ({ payload })));
    await expect(kit.drain('paced')).rejects.toMatchObject({ message: expect.stringContaining('pace') });
    await kit.advance('5m');
    expect(at.map((time) => time - start)).toEqual([0, 0, 60_000, 60_000, 120_000]);
    await kit.drain('paced');
  });

  it('works on a file, for jobs added in transactions of the application', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'crore-kit-'));
    const own = await openTesting({ file: join(dir, 'app.db'), patience: '10s' });
    const db = openApp(join(dir, 'app.db'));
    const queue = own.crore.queue<string, string>('orders');
    const death = own.kill(
      queue.work(async () => 'first'),
      { at: 'running' },
    );
    const handle = transaction(db, () => queue.addIn(db, 'x'));
    expect(await death).toBe(true);
    queue.work(async () => 'second');
    await own.advance('15s');
    expect(await handle.get()).toMatchObject({ state: 'done', result: 'second', crashes: 1 });
    db.close();
    await own.close();
    rmSync(dir, { recursive: true });
  });

  it('receives what an outbox sends', async () => {
    const db = openApp(':memory:');
    const outbox = openOutbox(db);
    const relaying = relay(db, kit.crore, { every: 5 });
    outbox.add('mails', 'x', { id: 'x' });
    await relaying.drained();
    kit.crore.queue('mails').work(async () => 'sent');
    await kit.drain('mails');
    expect(await kit.crore.queue('mails').get('x')).toMatchObject({ state: 'done', result: 'sent' });
    await relaying.close();
    db.close();
  });

  it('reports what is stuck', async () => {
    const hasty = await openTesting({ patience: 50 });
    const queue = hasty.crore.queue<string>('stuck');
    await queue.add('a', { id: 'a' });
    await hasty.drain(); // no worker on this queue: ignored unless it is named
    await expect(hasty.drain('stuck')).rejects.toMatchObject({
      message: expect.stringContaining('it has no workers'),
    });
    await queue.pause();
    const release = deferred();
    queue.work(() => release.promise, { grace: 0 });
    await expect(hasty.drain('stuck')).rejects.toMatchObject({ message: expect.stringContaining('paused') });
    await queue.resume();
    await expect(hasty.drain('stuck')).rejects.toMatchObject({
      code: 'TIMEOUT',
      message: expect.stringMatching(/queue 'stuck' has 0 ready and 1 active \('a'\)/),
    });
    await hasty.advance('1h'); // continues without it
    release.resolve();
    await hasty.drain('stuck');
    await hasty.close();
  });

  it('refuses invalid arguments', async () => {
    const refused = async (code: string, call: () => unknown) => {
      const error = await Promise.resolve()
        .then(call)
        .then(
          () => undefined,
          (reason: unknown) => reason,
        );
      expect(error).toBeInstanceOf(CroreError);
      expect((error as CroreError).code).toBe(code);
    };
    const worker = kit.crore.queue('w').work(async () => {
      throw new Fatal('never');
    });
    await refused('BAD_OPTION', () => openTesting({ sede: 1 } as never));
    await refused('BAD_OPTION', () => openTesting({ now: new Date('nonsense') }));
    await refused('BAD_DURATION', () => kit.advance('soon'));
    await refused('BAD_DURATION', () => kit.advance(-1));
    await refused('BAD_OPTION', () => kit.kill(worker, { at: 'noon' as never }));
    await refused('BAD_OPTION', () => kit.kill({} as never));
    await refused('BAD_OPTION', () => kit.kill(undefined as never));
    const pending = kit.kill(worker, { at: 'running' });
    const own = await openTesting();
    await refused('BAD_OPTION', () => own.kill(worker));
    await own.close();
    await refused('CLOSED', () => own.advance(1));
    await kit.close();
    expect(await pending).toBe(false);
  });
});
