import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Crore,
  type JobView,
  open,
  type ProcessOptions,
  type Queue,
  type Worker,
  type WorkOptions,
} from '../../dist/index.js';
import { until } from '../support/wait.js';

const HANDLER = new URL('../support/programs/handler-log.mjs', import.meta.url);
/** So many short jobs let the pool know that jobs are short. */
const WARM = 150;

type Options = WorkOptions & ProcessOptions;
type Payload = { log: string; act?: string; until?: string; mine?: string };
type Jobs = Queue<Payload, unknown>;
const KINDS: [string, (n: number) => Options][] = [
  ['processes', (processes) => ({ processes })],
  ['threads', (threads) => ({ threads })],
];

describe.each(KINDS)('short jobs that are sent ahead to %s', (kind, sized) => {
  const dir = mkdtempSync(join(tmpdir(), 'crore-ahead-'));
  const path = (name: string) => join(dir, name);
  let crore: Crore;
  let count = 0;
  let log = '';
  let worker: Worker<Payload>;

  beforeAll(async () => {
    crore = await open('sqlite::memory:', { onError: () => {}, logger: false });
  });
  afterAll(async () => {
    await crore.close();
    rmSync(dir, { recursive: true });
  });

  /** A queue with a worker whose pool is warm. */
  async function start(n: number, options: Options = {}): Promise<Jobs> {
    const queue: Jobs = crore.queue(`${kind}-${++count}`);
    log = path(`log-${count}`);
    worker = queue.work(HANDLER, { ...sized(n), ...options });
    await run(queue, Array(WARM).fill({}));
    writeFileSync(log, '');
    return queue;
  }

  /** Adds jobs that are claimed together. */
  async function add(queue: Jobs, payloads: Partial<Payload>[]): Promise<string[]> {
    await queue.pause();
    const handles = await queue.addMany(payloads.map((payload) => ({ payload: { log, ...payload } })));
    await queue.resume();
    return handles.map(({ id }) => id);
  }

  async function run(queue: Jobs, payloads: Partial<Payload>[]): Promise<string[]> {
    const ids = await add(queue, payloads);
    await until('everything has ended', async () => {
      const { ready, scheduled, active } = await queue.count();
      return ready + scheduled + active === 0;
    });
    return ids;
  }

  const lines = () => readFileSync(log, 'utf8').split('\n').slice(0, -1);
  const started = () => lines().map((line) => line.split(' ')[0]!);
  const mostAhead = () => Math.max(...lines().map((line) => Number(line.split(' ')[1])));
  const starts = (id: string) => started().filter((one) => one === id).length;
  const hasStarted = (id: string) => until('the job has started', () => starts(id) > 0);
  const views = (queue: Jobs, ids: string[]) =>
    Promise.all(ids.map(async (id) => (await queue.get(id)) as JobView<Payload, unknown>));
  const oks = (n: number) => Array<Partial<Payload>>(n).fill({});

  it('run once, in order, one at a time', async () => {
    const queue = await start(1);
    const ids = await run(queue, oks(1_000));
    expect(started()).toEqual(ids);
    expect(mostAhead()).toBeGreaterThan(5);
  });

  it.each(kind === 'processes' ? ['exit', 'abort'] : ['exit'])(
    'only the job that ran is charged when it ends its place with %s, and the others run once',
    async (act) => {
      const queue = await start(1, { maxCrashes: 1 });
      const payloads = oks(120).map((ok, i) => (i % 40 === 20 ? { act } : ok));
      const ids = await run(queue, payloads);
      expect(mostAhead()).toBeGreaterThan(5);
      expect([...started()].sort()).toEqual([...ids].sort());
      const jobs = await views(queue, ids);
      jobs.forEach(({ state, crashes, attempts }, i) => {
        const isBad = payloads[i]!.act === act;
        const outcomes = attempts.map(({ outcome }) => outcome);
        expect([state, crashes, outcomes]).toEqual(isBad ? ['dead', 1, ['crashed']] : ['done', 0, ['done']]);
      });
    },
  );

  it.runIf(kind === 'processes')('none runs again without being charged when processes are killed', async () => {
    const queue = await start(2, { maxCrashes: 100 });
    const ids = await add(queue, oks(1_500));
    for (let kills = 1; kills <= 6; kills++) {
      await until('some have started', () => lines().length >= kills * 150);
      process.kill(Number(lines().at(-1)!.split(' ')[2]!.split('/')[0]), 'SIGKILL');
    }
    await until('all are done', async () => (await queue.count()).done === WARM + ids.length);
    const jobs = await views(queue, ids);
    const crashes = jobs.reduce((sum, job) => sum + job.crashes, 0);
    expect(crashes).toBeLessThanOrEqual(6);
    const tooOften = jobs.filter((job) => starts(job.id) > 1 + job.crashes);
    expect(tooOften.map(({ id }) => id)).toEqual([]);
  });

  it('a job that needs too much memory is charged alone', async () => {
    const queue = await start(1, { maxCrashes: 1, maxMemory: '40mb' });
    const ids = await run(queue, [...oks(20), { act: 'eat' }, ...oks(20)]);
    expect([...started()].sort()).toEqual([...ids].sort());
    const jobs = await views(queue, ids);
    expect(jobs.map(({ state }) => state)).toEqual(ids.map((_id, i) => (i === 20 ? 'dead' : 'done')));
    expect(jobs.map(({ crashes }) => crashes)).toEqual(ids.map((_id, i) => (i === 20 ? 1 : 0)));
  });

  it('go elsewhere when the one before them turns slow, though it never yields', async () => {
    const queue = await start(2);
    const go = path(`go-${count}`);
    const [slow, ...others] = await add(queue, [{ act: 'spin', until: go }, ...oks(60)]);
    await until('the others are done', async () => (await queue.count()).active === 1 && started().length === 61);
    expect(await queue.get(slow!)).toMatchObject({ state: 'active' });
    writeFileSync(go, '');
    await until('it is done', async () => (await queue.get(slow!))!.state === 'done');
    await run(queue, oks(50));
    expect(others.map(starts)).toEqual(others.map(() => 1));
  });

  it('go back to the queue, uncharged, when nobody else is free', async () => {
    const queue = await start(1);
    const go = path(`go-${count}`);
    const [slow, ...others] = await add(queue, [{ act: 'spin', until: go }, ...oks(20)]);
    await hasStarted(slow!);
    await until('they are ready', async () => (await queue.count()).ready === 20);
    expect((await views(queue, others)).map(({ attempt }) => attempt)).toEqual(others.map(() => 0));
    expect(started()).toEqual([slow]);
    const helped = queue.work(HANDLER, sized(1));
    await until('another worker has done them', async () => started().length === 21);
    await helped.close();
    writeFileSync(go, '');
    await until('the slow one is done', async () => (await queue.count()).active === 0);
    expect(others.map(starts)).toEqual(others.map(() => 1));
  });

  it('one that is cancelled before it starts never runs, and its neighbours do', async () => {
    const queue = await start(1, { killAfter: 1 });
    const go = path(`go-${count}`);
    const [slow, ...others] = await add(queue, [{ act: 'spin', until: go }, ...oks(9)]);
    await hasStarted(slow!);
    const cancelled = others.splice(4, 1)[0]!;
    expect(await queue.cancel(cancelled)).toBe(true);
    writeFileSync(go, '');
    await until('the others are done', async () => started().length === 9 && (await queue.count()).active === 0);
    expect(starts(cancelled)).toBe(0);
    expect(await queue.get(slow!)).toMatchObject({ state: 'done' });
    expect(new Set(lines().map((line) => line.split(' ')[2])).size).toBe(1);
  });

  it('survive the kill of the one before them: it is cancelled, they run once and are not charged', async () => {
    const queue = await start(1, { killAfter: 1, maxCrashes: 1 });
    const [slow, ...others] = await add(queue, [{ act: 'spin', until: path('never') }, ...oks(30)]);
    await hasStarted(slow!);
    await queue.cancel(slow!);
    await until('the others are done', async () => started().length === 31 && (await queue.count()).active === 0);
    expect(others.map(starts)).toEqual(others.map(() => 1));
    const jobs = await views(queue, [slow!, ...others]);
    expect(jobs.map(({ state }) => state)).toEqual(['cancelled', ...others.map(() => 'done')]);
    expect(jobs.map(({ crashes }) => crashes)).toEqual(jobs.map(() => 0));
  });

  it('are given back by close() without being run, in their order', async () => {
    const queue = await start(1);
    const [held, ...others] = await add(queue, [{ act: 'hold' }, ...oks(20)]);
    await hasStarted(held!);
    await worker.close();
    expect(await queue.get(held!)).toMatchObject({ state: 'done', result: 'CLOSED' });
    expect(started()).toEqual([held]);
    const { jobs } = await queue.list('ready');
    expect(jobs.map(({ id, attempt }) => [id, attempt])).toEqual(others.map((id) => [id, 0]));
  });

  it('middleware is called when a job can start, not when it could be sent ahead', async () => {
    const queue: Jobs = crore.queue(`${kind}-${++count}`);
    log = path(`log-${count}`);
    let within = 0;
    let most = 0;
    queue.work(HANDLER, sized(1)).use(async (_job, next) => {
      most = Math.max(most, ++within);
      const result = await next();
      within -= 1;
      return result;
    });
    await run(queue, oks(200));
    expect(most).toBe(1);
    expect(mostAhead()).toBe(0);
  });
});

describe('handlers that compute in processes', () => {
  it('run at the same time, and the event loop of the worker stays free', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'crore-busy-'));
    await using crore = await open('sqlite::memory:', { onError: () => {}, logger: false });
    const queue = crore.queue<Payload>('busy');
    queue.work(HANDLER, { processes: 2 });
    const [a, b, log] = ['a', 'b', 'log'].map((name) => join(dir, name)) as [string, string, string];
    // Each waits for the other, without yielding.
    await queue.addMany([
      { payload: { log, act: 'meet', mine: a, until: b } },
      { payload: { log, act: 'meet', mine: b, until: a } },
    ]);
    await until('both are done', async () => (await queue.count()).done === 2);
    const busy = queue.addMany(['x', 'y'].map((n) => ({ payload: { log, act: 'spin', until: join(dir, n) } })));
    await busy;
    await until('both run', () => readFileSync(log, 'utf8').split('\n').length === 5);
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const began = performance.now();
    for (let turns = 0; turns < 200; turns++) await new Promise((resolve) => setTimeout(resolve, 1));
    delay.disable();
    const took = performance.now() - began;
    expect((await queue.count()).active).toBe(2);
    // A handler of this loop would have kept it for the whole time.
    expect(delay.percentile(50) / 1e6).toBeLessThan(took / 10);
    for (const name of ['x', 'y']) writeFileSync(join(dir, name), '');
    await until('both are done', async () => (await queue.count()).done === 4);
    rmSync(dir, { recursive: true });
  });
});
