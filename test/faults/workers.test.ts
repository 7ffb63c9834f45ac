import { afterEach, describe, expect, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { freeze } from '../support/freeze.js';
import {
  asArgument,
  type Program,
  startWorker,
  withFlags,
  withLateThreads,
  withoutThreads,
} from '../support/processes.js';
import { ROUNDS } from '../support/rounds.js';
import { STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';

const FAST = { lease: 1_000, heartbeat: 200, sweep: 100 };

describe.each(STORES)('workers that die, on %s', ROUNDS, (_name, fresh) => {
  let store: TestStore;
  let crore: Crore;
  let programs: Program[] = [];

  const begin = async () => {
    store = await fresh();
    crore = await open(store.url, { onError: () => {} });
  };
  const work = async (options: Parameters<typeof startWorker>[0] extends infer S ? Omit<S & object, 'url'> : never) => {
    const program = await startWorker({ url: store.url, ...(options as { queue: string }) });
    programs.push(program);
    return program;
  };
  afterEach(async () => {
    for (const program of programs) await program.end('SIGKILL');
    programs = [];
    await crore.close();
    await store.stop();
  });

  it('have late reports refused and jobs aborted after being suspended beyond the lease', async () => {
    await begin();
    const queue = crore.queue<string, number>('paused');
    const handle = await queue.add('hold', { id: 'slow' });
    const sleeper = await work({ queue: 'paused', mode: 'hold', options: FAST });
    await sleeper.line('start slow');
    await freeze(sleeper.child.pid!, store.url);
    const other = await work({ queue: 'paused', take: 10, options: FAST });
    expect(await handle.finished({ timeout: '20s' })).toBe(other.child.pid);
    sleeper.signal('SIGCONT');
    await sleeper.line('aborted slow');
    await sleeper.line('end slow');
    expect(await handle.get()).toMatchObject({ state: 'done', result: other.child.pid, crashes: 1, attempt: 1 });
    const next = await queue.add('y', { id: 'next' });
    await other.end('SIGTERM');
    expect(await next.finished({ timeout: '20s' })).toEqual(expect.any(Number));
  });

  it('are not confused with workers whose event loop is busy', async () => {
    await begin();
    const queue = crore.queue<string>('busy');
    const handle = await queue.add('spin');
    // The job may arrive before the heartbeat thread has started, which takes a while on a busy machine.
    const options = { ...FAST, lease: 2_000 };
    const spinner = await work({ queue: 'busy', mode: 'spin', take: 3 * options.lease, options });
    await work({ queue: 'busy', options });
    await handle.finished({ timeout: '30s' });
    expect(await handle.get()).toMatchObject({ state: 'done', crashes: 0, attempt: 1, result: spinner.child.pid });
  });

  it.each([
    ['whose program is an argument of node, which threads do not accept', asArgument()],
    ['with options of V8, which threads do not accept either', withFlags('--max-old-space-size=256', '--expose-gc')],
  ])('are not confused with workers %s', async (_what, within) => {
    await begin();
    const queue = crore.queue<string>('evaluated');
    const handle = await queue.add('spin');
    const options = { ...FAST, lease: 2_000 };
    const setup = { url: store.url, queue: 'evaluated', mode: 'spin', take: 3 * options.lease, options };
    const spinner = await startWorker(setup, within);
    programs.push(spinner);
    await work({ queue: 'evaluated', options });
    await handle.finished({ timeout: '30s' });
    expect(await handle.get()).toMatchObject({ state: 'done', crashes: 0, attempt: 1, result: spinner.child.pid });
  });

  it('are not confused with workers whose heartbeat thread takes longer than a lease to start', async () => {
    await begin();
    const queue = crore.queue<string>('late');
    const setup = { url: store.url, queue: 'late', take: 2_500, options: { ...FAST, heartbeat: 30 } };
    const late = await startWorker(setup, withLateThreads(2_000));
    programs.push(late);
    const handle = await queue.add('x');
    await late.line('start');
    await work({ queue: 'late', options: FAST });
    expect(await handle.finished({ timeout: '20s' })).toBe(late.child.pid);
    expect(await handle.get()).toMatchObject({ crashes: 0, attempt: 1 });
    expect(late.lines.filter((line) => line.startsWith('aborted'))).toEqual([]);
  });

  it('are not confused with workers whose heartbeat thread cannot start', async () => {
    await begin();
    const queue = crore.queue<string>('threadless');
    const setup = { url: store.url, queue: 'threadless', take: 2_500, options: FAST };
    const threadless = await startWorker(setup, withoutThreads());
    programs.push(threadless);
    const handle = await queue.add('x');
    await threadless.line('start');
    await work({ queue: 'threadless', options: FAST });
    expect(await handle.finished({ timeout: '20s' })).toBe(threadless.child.pid);
    expect(await handle.get()).toMatchObject({ crashes: 0, attempt: 1 });
    expect(threadless.lines.filter((line) => line.startsWith('aborted'))).toEqual([]);
  });

  it('include workers whose event loop hangs', async () => {
    await begin();
    const queue = crore.queue<string>('hung');
    const handle = await queue.add('spin');
    const spinner = await work({ queue: 'hung', mode: 'spin', take: 20_000, options: { ...FAST, hung: 800 } });
    await spinner.line('start');
    const other = await work({ queue: 'hung', options: FAST });
    expect(await handle.finished({ timeout: '20s' })).toBe(other.child.pid);
    expect(await handle.get()).toMatchObject({ crashes: 1, attempt: 1 });
  });

  it('make the job that kills them dead after a few crashes, and leave other jobs alone', async () => {
    await begin();
    const queue = crore.queue<string>('poison');
    const options = { ...FAST, concurrency: 5, maxCrashes: 3 };
    const neighbours = await queue.addMany([1, 2, 3, 4].map((i) => ({ payload: 'y', id: `n${i}` })));
    const poison = await queue.add('poison', { id: 'poison' });
    for (let i = 1; i <= 3; i++) {
      const victim = await work({ queue: 'poison', mode: 'poison', take: 50, options });
      await until('the worker to die', () => !victim.running);
    }
    await work({ queue: 'poison', options });
    await expect(poison.finished({ timeout: '20s' })).rejects.toMatchObject({ code: 'JOB_DEAD' });
    expect(await poison.get()).toMatchObject({ state: 'dead', crashes: 3, attempt: 0 });
    for (const neighbour of neighbours) {
      await neighbour.finished({ timeout: '20s' });
      const job = await neighbour.get();
      expect(job!.attempt).toBe(1);
      expect(job!.crashes).toBeLessThan(2);
    }
  });

  it('turn a lost raw task into a job with one crash', async () => {
    await begin();
    const queue = crore.queue('raw');
    await queue.push('the task');
    const victim = await work({ queue: 'raw', mode: 'abort', options: FAST });
    await until('the worker to die', () => !victim.running);
    const healthy = await work({ queue: 'raw', options: FAST });
    const line = await healthy.line('end ');
    const id = line.slice(4);
    await until('the job to be done', async () => (await queue.count()).done === 1);
    expect(await queue.get(id)).toMatchObject({ state: 'done', crashes: 1, attempt: 1 });
  });

  it('give jobs back without counting an attempt if these outlast the grace period of a shutdown', async () => {
    await begin();
    const queue = crore.queue<string>('grace');
    const handle = await queue.add('x', { id: 'long' });
    const program = await work({ queue: 'grace', take: 30_000, options: { ...FAST, grace: 50 } });
    await program.line('start long');
    await program.end('SIGTERM');
    expect(await handle.get()).toMatchObject({ state: 'ready', attempt: 0, crashes: 0 });
    expect(await queue.workers()).toEqual([]);
  });
});
