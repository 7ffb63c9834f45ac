import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Crore,
  open,
  type ProcessOptions,
  type Queue,
  type State,
  type Worker,
  type WorkOptions,
} from '../../dist/index.js';
import { deferred, isAlive, until } from '../support/wait.js';

const module = (name: string) => new URL(`../support/programs/${name}.mjs`, import.meta.url);
const HANDLER = module('handler');
const TIMEOUT = { timeout: '30s' };
const read = (file: string) => readFileSync(file, 'utf8');

type Options = WorkOptions & ProcessOptions;
type Sizes = (n: number) => Options;
const KINDS: [string, Sizes][] = [
  ['processes', (processes) => ({ processes })],
  ['threads', (threads) => ({ threads })],
];

/** The process a handler ran in, from what it says of its place. */
const pidOf = (place: unknown) => Number(String(place).split('/')[0]);

describe.each(KINDS)('a handler in %s', (kind, sized) => {
  let crore: Crore;
  const errors: [Error, string][] = [];
  const one = kind === 'processes' ? 'process' : 'thread';
  const workers: Worker<unknown>[] = [];
  let count = 0;

  beforeAll(async () => {
    crore = await open('sqlite::memory:', { onError: (...error) => void errors.push(error), logger: false });
  });
  afterAll(() => crore.close());

  /** A queue of its own with a worker. */
  function start(n: number, options: Options = {}, url = HANDLER): Queue<unknown, unknown> {
    const queue = crore.queue<unknown, unknown>(`${kind}-${++count}`);
    workers.push(queue.work(url, { ...sized(n), ...options }));
    return queue;
  }

  const lastWorker = () => workers.at(-1)!;
  const running = (queue: Queue<unknown, unknown>, id: string) =>
    until('the handler runs', async () => (await queue.get(id))!.progress) as Promise<string>;
  const inState = async (queue: Queue<unknown, unknown>, id: string, ...states: State[]) => {
    await until(`the job is ${states.join(' or ')}`, async () => states.includes((await queue.get(id))!.state));
    return (await queue.get(id))!;
  };
  const ended = (queue: Queue<unknown, unknown>, id: string) => inState(queue, id, 'done', 'dead', 'cancelled');

  it('gets the job as in process, and its result arrives', async () => {
    const queue = start(1);
    const handle = await queue.add(
      { act: 'job', text: 'ü', list: [1, null] },
      { id: 'seen', headers: { traceparent: '00-a-b-01', tenant: 'ada' }, attempts: 7 },
    );
    expect(await handle.finished(TIMEOUT)).toEqual({
      id: 'seen',
      attempt: 1,
      maxAttempts: 7,
      crashes: 0,
      headers: { traceparent: '00-a-b-01', tenant: 'ada' },
      token: expect.stringMatching(/./),
      queue: queue.name,
      isTask: false,
      payload: { act: 'job', text: 'ü', list: [1, null] },
    });
  });

  it('gets and returns bytes as bytes', async () => {
    const queue = start(1);
    const handle = await queue.add(new TextEncoder().encode('bytes'));
    expect([...((await handle.finished(TIMEOUT)) as Uint8Array)]).toEqual([0, 255, 10]);
    await queue.push('string');
    const dead = await until('the raw task has failed', async () => (await queue.list('scheduled')).jobs[0]);
    expect(dead!.attempts[0]!.error).toEqual({ name: '', message: 'a string' });
  });

  it('runs elsewhere, is started when it is needed, and is used again', async () => {
    const queue = start(2);
    const place = await (await queue.add('place')).finished(TIMEOUT);
    expect(place).not.toBe(`${process.pid}/0`);
    expect(pidOf(place) === process.pid).toBe(kind === 'threads');
    for (let i = 1; i <= 3; i++) expect(await (await queue.add('count')).finished(TIMEOUT)).toBe(i);
  });

  it('errors arrive with name, message, cause, stack and fields', async () => {
    const seen: unknown[] = [];
    const backoff = (_attempt: number, error: unknown) => {
      seen.push(error);
      return 1;
    };
    const queue = start(1, { backoff });
    const handle = await queue.add('throw', { attempts: 2 });
    const { attempts, error } = await ended(queue, handle.id);
    expect(error).toBe('RangeError: out of range\nin two lines (caused by: ECONNREFUSED no answer)');
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['failed', 'failed']);
    expect(attempts[0]!.error!.stack).toMatch(/explode.*handler\.mjs/);
    expect(seen[0]).toMatchObject({ name: 'RangeError', status: 503, cause: { code: 'ECONNREFUSED' } });
  });

  it('Fatal, snooze, release and results that cannot be written do what they do in process', async () => {
    const queue = start(1);
    const fatal = await queue.add('fatal');
    expect(await ended(queue, fatal.id)).toMatchObject({ state: 'dead', attempt: 1, error: 'Fatal: never again' });
    const unwritable = await queue.add('unwritable');
    const { state, error } = await ended(queue, unwritable.id);
    expect([state, error]).toEqual(['dead', expect.stringContaining('the result cannot be written as JSON')]);
    const snoozed = await queue.add('snooze');
    const sleeping = await inState(queue, snoozed.id, 'scheduled');
    expect([sleeping.attempt, sleeping.attempts]).toEqual([0, []]);
    const bad = await queue.add('badProgress', { attempts: 1 });
    expect((await ended(queue, bad.id)).error).toContain('progress is a undefined');
    const queue2 = start(1, { onError: () => {} });
    const released = await queue2.add('release');
    await until('it was released', async () => (await queue2.get(released.id))!.state === 'ready');
    await queue2.pause();
    expect(await queue2.get(released.id)).toMatchObject({ attempts: [] });
    await queue2.obliterate();
  });

  it('progress and log lines are kept in order, many at once and unawaited ones too', async () => {
    const queue = start(1);
    const handle = await queue.add('notes');
    await handle.finished(TIMEOUT);
    const job = await handle.get();
    expect(job!.progress).toEqual({ percent: 40 });
    expect(job!.log).toEqual([...Array.from({ length: 100 }, (_x, i) => `line ${i}`), 'the last line']);
  });

  it('what a handler left behind writes nothing to the next job, and its own messages mean nothing', async () => {
    const queue = start(1);
    await (await queue.add('late')).finished(TIMEOUT);
    const next = await queue.add('hold');
    await running(queue, next.id);
    await queue.cancel(next.id);
    const talk = await queue.add('chat');
    expect(await talk.finished(TIMEOUT)).toBe('heard nothing');
    expect((await queue.get(next.id))!.log).toBeUndefined();
  });

  it('a cancelled handler is told first, and its process goes on', async () => {
    const queue = start(1, { killAfter: '30s' });
    const place = await (await queue.add('place')).finished(TIMEOUT);
    const handle = await queue.add('hold');
    await running(queue, handle.id);
    await queue.cancel(handle.id);
    expect(await (await queue.add('place')).finished(TIMEOUT)).toBe(place);
    expect(await queue.get(handle.id)).toMatchObject({ state: 'cancelled' });
  });

  it('a cancelled busy loop is killed, and only it: its neighbour ends as if nothing had happened', async () => {
    const queue = start(2, { killAfter: 50 });
    const neighbour = await queue.add('hold');
    const place = await running(queue, neighbour.id);
    const spin = await queue.add('spin');
    const spinning = await running(queue, spin.id);
    await queue.cancel(spin.id);
    const after = await (await queue.add('place')).finished(TIMEOUT);
    expect([place, spinning]).not.toContain(after);
    expect(await queue.get(spin.id)).toMatchObject({ state: 'cancelled', crashes: 0 });
    expect(await queue.get(neighbour.id)).toMatchObject({ state: 'active', attempt: 1, crashes: 0, progress: place });
    await lastWorker().close();
    expect(await queue.get(neighbour.id)).toMatchObject({ state: 'done', result: 'CLOSED', crashes: 0 });
  });

  it.each(['spin', 'stubborn'])('the end of its reservation stops a handler that does not listen: %s', async (act) => {
    const queue = start(1, { killAfter: 50 });
    const handle = await queue.add(act, { reservation: 500, attempts: 1 });
    const { state, crashes, attempts } = await ended(queue, handle.id);
    expect([state, crashes]).toEqual(['dead', 0]);
    expect(attempts).toMatchObject([{ outcome: 'failed', error: { name: 'TIMEOUT' } }]);
    expect(await (await queue.add('count')).finished(TIMEOUT)).toBe(1);
  });

  it(`a job that ends its ${one} counts as a crash, and is dead after the last one it may have`, async () => {
    const queue = start(2, { maxCrashes: 2 });
    const handle = await queue.add('exit');
    const { state, attempt, crashes, attempts, error } = await ended(queue, handle.id);
    expect([state, attempt, crashes]).toEqual(['dead', 0, 2]);
    expect(error).toBe(`the ${one} of its handler died (exit 3) (crash 2)`);
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['crashed', 'crashed']);
    expect(attempts[0]!.error).toEqual({
      name: 'WORKER_LOST',
      message: `the ${one} of its handler died (exit 3)`,
      stderr: 'last words',
    });
    expect(await (await queue.add('count')).finished(TIMEOUT)).toBe(1);
  });

  it('an error that nobody catches is a crash too, with its stack in the report', async () => {
    const queue = start(1, { maxCrashes: 1 });
    const { attempts, crashes } = await ended(queue, (await queue.add('uncaught')).id);
    expect(crashes).toBe(1);
    expect(attempts[0]!.error!.stderr).toMatch(/RangeError: nobody catches this[\s\S]*handler\.mjs/);
  });

  it('a raw task that crashes becomes a job with its crash', async () => {
    const queue = start(1, { maxCrashes: 1 });
    await queue.push('exit');
    const dead = await until('it is dead', async () => (await queue.list('dead')).jobs[0]);
    expect(dead!.attempts).toMatchObject([{ outcome: 'crashed', error: { name: 'WORKER_LOST' } }]);
  });

  it('a neighbour of a crash is not charged', async () => {
    const queue = start(2, { maxCrashes: 1 });
    const neighbour = await queue.add('hold');
    const place = await running(queue, neighbour.id);
    expect(await ended(queue, (await queue.add('exit')).id)).toMatchObject({ state: 'dead', crashes: 1 });
    await lastWorker().close();
    expect(await queue.get(neighbour.id)).toMatchObject({ state: 'done', crashes: 0, attempt: 1, progress: place });
  });

  it('more memory than allowed is a crash', async () => {
    const queue = start(1, { maxCrashes: 1, maxMemory: '40mb' });
    const { state, attempts } = await ended(queue, (await queue.add('eat')).id);
    expect(state).toBe('dead');
    const { message, stderr } = attempts[0]!.error!;
    expect(`${message}\n${stderr}`).toMatch(/out of memory|memory limit/);
    expect(await (await queue.add('count')).finished(TIMEOUT)).toBe(1);
  });

  it('one that ends while it is idle is replaced', async () => {
    const queue = start(1, { maxCrashes: 1 });
    const place = String(await (await queue.add('exitLater')).finished(TIMEOUT));
    if (kind === 'processes') await until('it is gone', () => !isAlive(pidOf(place), read));
    await until('another one answers', async () => {
      const { state, result } = await ended(queue, (await queue.add('place')).id);
      return state === 'done' && result !== place;
    });
  });

  it.each([
    ['handler-throws', 'SyntaxError: broken at import'],
    ['handler-missing', 'no default export'],
    ['handler-exits', 'exit 9'],
  ])('a module that cannot be loaded fails the job and names itself: %s', async (name, why) => {
    errors.length = 0;
    const queue = start(2, { backoff: () => 1 }, module(name));
    const handle = await queue.add('x', { attempts: 2 });
    const { state, crashes, attempts } = await ended(queue, handle.id);
    expect([state, crashes]).toEqual(['dead', 0]);
    expect(attempts).toHaveLength(2);
    for (const { outcome, error } of attempts) {
      expect(outcome).toBe('failed');
      expect(error!.message).toContain(`cannot load the handler module ${module(name).href}`);
      expect(error!.message).toContain(why);
    }
    expect(errors.map(([error, what]) => [(error as { code?: string }).code, what])).toEqual(
      attempts.map(() => ['WORKER_FAILED', 'starting a handler']),
    );
  });

  it('close() ends at once while the next start of a broken module is delayed', async () => {
    const queue = start(1, { backoff: () => 1 }, module('handler-throws'));
    const handle = await queue.add('x', { attempts: 50 });
    await until('some attempts have failed', async () => (await handle.get())!.attempts.length >= 5);
    await lastWorker().close();
    const { attempt, attempts } = (await handle.get())!;
    expect(attempt).toBeLessThanOrEqual(attempts.length);
  });

  it('close() aborts signals with CLOSED, waits for what ends in time, and gives the rest back', async () => {
    const queue = start(4, { grace: 300 });
    const acts = [
      ['hold', {}],
      ['hold', { after: 'throw' }],
      ['spin', {}],
      ['stubborn', {}],
    ] as const;
    const handles = await queue.addMany(acts.map(([payload, headers]) => ({ payload, headers })));
    const places: string[] = [];
    for (const { id } of handles) places.push(await running(queue, id));
    await lastWorker().close();
    const jobs = await Promise.all(handles.map((handle) => handle.get()));
    expect(jobs.map((job) => [job!.state, job!.attempt, job!.crashes, job!.result])).toEqual([
      ['done', 1, 0, 'CLOSED'],
      ['ready', 0, 0, undefined],
      ['ready', 0, 0, undefined],
      ['ready', 0, 0, undefined],
    ]);
    if (kind === 'processes') expect(places.filter((place) => isAlive(pidOf(place), read))).toEqual([]);
  });

  it('close() before the first job, and while a process starts, ends as well', async () => {
    start(2);
    await lastWorker().close();
    const queue = start(1, { grace: 0 });
    const handle = await queue.add('place');
    await until('it is claimed', async () => (await handle.get())!.state !== 'ready');
    await lastWorker().close();
    expect(['ready', 'done']).toContain((await handle.get())!.state);
  });

  it('the event loop of the worker is free while all its handlers spin', async () => {
    const queue = start(2, { killAfter: 1 });
    const spins = await queue.addMany([{ payload: 'spin' }, { payload: 'spin' }]);
    for (const { id } of spins) await running(queue, id);
    const here = crore.queue<number, number>(`${kind}-here`);
    const turned = deferred();
    setImmediate(() => turned.resolve());
    await turned.promise;
    here.work(async (job) => job.payload + 1);
    expect(await (await here.add(1)).finished(TIMEOUT)).toBe(2);
    expect((await queue.count()).active).toBe(2);
    for (const { id } of spins) await queue.cancel(id);
    expect(await (await queue.add('count')).finished(TIMEOUT)).toBe(1);
  });
});
