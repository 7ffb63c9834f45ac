import { describe, expect, it } from 'vitest';
import { childrenOf, livingGroup, processes } from '../ring/support/proc.js';
import { alive, type Running } from '../ring/support/w8y.js';
import { freeze } from '../support/freeze.js';
import { RedisServer } from '../support/redis.js';
import { STORES } from '../support/stores.js';
import { deferred, until } from '../support/wait.js';
import { Line, pidsIn } from './support/crore.js';
import { type Desk, setUpDesk } from './support/setup.js';

/** Prints its pid and that of a child process, and keeps running; `first` runs before. */
const stays = (first = ':') =>
  `${first}; (echo pid $(exec sh -c 'echo $PPID'); sleep 60; :) & echo pid $$; wait; sleep 60`;
const STUBBORN = stays("trap '' TERM");

describe.each(STORES)('how a child of crore work ends on %s', (storeName, fresh) => {
  /** Tests that do not depend on the store run once. */
  const once = it.runIf(storeName === 'sqlite');
  let { store, line, name, queue } = {} as Desk;
  setUpDesk('ends', fresh, (desk) => {
    ({ store, line, name, queue } = desk);
  });

  const work = (args: string[]) => line.start(['work', name, ...args]);
  /** The pids of a child and its own child. */
  const tree = async (running: Running): Promise<number[]> => {
    await until('the children to print their pids', () => pidsIn(running.written.out).length >= 2);
    return pidsIn(running.written.out);
  };
  const gone = (pids: number[]) => until('the process tree to be gone', () => !pids.some(alive));

  it('SIGTERM to the worker: children get SIGTERM, then SIGKILL; their jobs lose no attempt', async () => {
    await queue.addMany(['good', 'bad'].map((id) => ({ payload: id, id })));
    const body = `case {} in good) trap 'exit 0' TERM;; bad) trap '' TERM;; esac; echo pid $$; while :; do sleep 0.05; done`;
    const running = work(['-j', '2', '--grace', '2s', '--', 'sh', '-c', body]);
    await until('both to run', () => pidsIn(running.written.out).length === 2);
    running.signal('SIGTERM');
    const { code, err } = await running.ended;
    expect(code).toBe(0);
    expect(err).toContain('crore: good: done, exit 0');
    expect(err).toContain('crore: bad: released, killed by SIGKILL');
    expect(await queue.get('good')).toMatchObject({ state: 'done' });
    expect(await queue.get('bad')).toMatchObject({ state: 'ready', attempt: 0, crashes: 0 });
    expect(pidsIn(running.written.out).some(alive)).toBe(false);
    expect(await queue.workers()).toEqual([]);
  });

  once('SIGINT to the worker: the same with exit code 130; a second signal kills immediately', async () => {
    await queue.add('x', { id: 'x' });
    const running = work(['--grace', '1h', '--', 'sh', '-c', stays("trap 'echo asked' TERM")]);
    const pids = await tree(running);
    running.signal('SIGINT');
    await running.says('asked');
    await queue.add('y', { id: 'y' });
    running.signal('SIGINT');
    expect((await running.ended).code).toBe(130);
    await gone(pids);
    expect(await queue.get('x')).toMatchObject({ state: 'ready', attempt: 0 });
    expect(await queue.get('y')).toMatchObject({ state: 'ready', attempt: 0 });
  });

  it('job cancelled: the whole process group ends, and the worker continues', async () => {
    await queue.add('x', { id: 'x' });
    await queue.add('next', { id: 'next' });
    const body = `[ "$1" = next ] || { ${STUBBORN}; }`;
    const running = work(['--grace', '200ms', '--', 'sh', '-c', body, 'sh', '{}']);
    const pids = await tree(running);
    expect(await line.json('job', 'cancel', name, 'x')).toEqual([{ queue: name, id: 'x', outcome: 'cancelled' }]);
    await gone(pids);
    expect(livingGroup(pids[1]!)).toEqual([]);
    await queue.handle('next').finished({ timeout: '20s' });
    expect(await queue.get('x')).toMatchObject({ state: 'cancelled' });
    running.signal('SIGTERM');
    expect((await running.ended).err).toContain('crore: x: lost, killed by SIGKILL');
  });

  it('lease lost: the process group ends while another worker has the job', async () => {
    await queue.add('x', { id: 'x' });
    const running = work(['--lease', '2s', '--grace', '100ms', '--', 'sh', '-c', STUBBORN]);
    const pids = await tree(running);
    await freeze(running.pid, store.url);
    const taken = deferred<number>();
    const release = deferred();
    const other = queue.work(
      async (job) => {
        taken.resolve(job.crashes);
        await release.promise;
      },
      { lease: 2_000, sweep: 100 },
    );
    expect(await taken.promise).toBe(1);
    running.signal('SIGCONT');
    await gone(pids);
    release.resolve();
    await queue.handle('x').finished({ timeout: '20s' });
    await other.close();
    running.signal('SIGTERM');
    expect((await running.ended).code).toBe(0);
  });

  it('queue cleared: nothing continues to work for it', async () => {
    await queue.add('x');
    const running = work(['--lease', '2s', '--', 'sh', '-c', stays()]);
    const pids = await tree(running);
    expect((await line.run(['queue', 'clear', name, '--yes'])).code).toBe(0);
    await gone(pids);
    running.signal('SIGTERM');
    expect((await running.ended).code).toBe(0);
  });

  once('--timeout: the process group ends, and the job is retried later', async () => {
    await queue.add('x', { id: 'x', backoff: '1h' });
    const running = work(['--timeout', '300ms', '--grace', '100ms', '--drain', '--', 'sh', '-c', STUBBORN]);
    const { code } = await running.ended;
    expect(code).toBe(0);
    await gone(pidsIn(running.written.out));
    expect(await queue.get('x')).toMatchObject({
      state: 'scheduled',
      attempt: 1,
      error: 'Error: took longer than 300 ms: killed by SIGKILL',
    });
  });

  once('--timeout while the worker ends: the job still counts as failed', async () => {
    await queue.add('x', { id: 'x', backoff: '1h' });
    const late = stays("trap 'echo asked' TERM");
    const running = work(['--timeout', '300ms', '--grace', '1h', '--', 'sh', '-c', late]);
    await running.says('asked');
    running.signal('SIGINT');
    running.signal('SIGTERM');
    expect((await running.ended).err).toContain('crore: x: retry, killed by SIGKILL');
    expect(await queue.get('x')).toMatchObject({ state: 'scheduled', attempt: 1 });
  });

  it('reservation over: the process group ends, and the job is retried', async () => {
    await queue.add('x', { id: 'x', reservation: '300ms', backoff: '1h' });
    const running = work(['--grace', '100ms', '--', 'sh', '-c', STUBBORN]);
    await until('the job to be scheduled again', async () => (await queue.get('x'))?.state === 'scheduled');
    await gone(pidsIn(running.written.out));
    running.signal('SIGTERM');
    await running.ended;
  });

  it('SIGKILL to the worker: no child survives, not even in its own session, and the job comes back', async () => {
    await queue.add('x', { id: 'x' });
    const body = `setsid sh -c 'echo pid $$; sleep 60; :' & ${STUBBORN}`;
    const running = work(['--lease', '2s', '--', 'sh', '-c', body]);
    await until('all to print their pid', () => pidsIn(running.written.out).length === 3);
    const guards = childrenOf(running.pid);
    running.signal('SIGKILL');
    await gone([...pidsIn(running.written.out), ...guards]);
    const crashes = deferred<number>();
    const other = queue.work((job) => crashes.resolve(job.crashes), { sweep: 100 });
    expect(await crashes.promise).toBe(1);
    await other.close();
  });

  once('Ctrl-Z: the executable stops and continues with the worker', async () => {
    await queue.add('x', { id: 'x' });
    const running = work(['--', 'sh', '-c', stays()]);
    const pids = await tree(running);
    const all = (state: string) =>
      pids.every((pid) => processes().some((each) => each.pid === pid && each.state === state));
    const stopped = () => all('T');
    // A shell that is stopped while it starts a program shows D instead of T.
    await until('both shells to wait for their sleep', () => all('S'));
    const picture = () =>
      JSON.stringify(
        processes().filter(({ pid, group }) => pid === running.pid || pids.includes(pid) || pids.includes(group)),
      );
    running.signal('SIGTSTP');
    await until(() => `the executable to stop: ${picture()} of ${running.pid}, ${pids}`, stopped);
    await until('the worker to be stopped, too', () =>
      processes().some((each) => each.pid === running.pid && each.state === 'T'),
    );
    running.signal('SIGCONT');
    await until(
      () => `the executable to continue: ${picture()} of ${running.pid}, ${pids}`,
      () => !stopped(),
    );
    running.signal('SIGTERM');
    expect((await running.ended).code).toBe(0);
    await gone(pids);
  });

  once('normal exit: no guard is left when the worker has ended', async () => {
    await queue.add('x', { id: 'x' });
    const running = work(['--drain', '--', 'sh', '-c', 'echo pid $$; read line', 'sh']);
    await until('the job to end', async () => (await queue.get('x'))?.state !== 'active');
    const { code } = await running.ended;
    expect(code).toBe(0);
    expect(childrenOf(running.pid)).toEqual([]);
  });
});

describe('a store that becomes unreachable', () => {
  it('ends the children of crore work before the lease expires; the worker continues afterwards', async () => {
    const redis = await RedisServer.start(['--appendonly', 'yes', '--appendfsync', 'always']);
    const line = new Line(redis.url);
    await line.json('push', 'q', 'x', '--id', 'x');
    const body = `[ "$CRORE_ATTEMPT" = 1 ] && [ ! -e ${redis.dir}/again ] || exit 0; touch ${redis.dir}/again; ${STUBBORN}`;
    const running = line.start(['work', 'q', '--lease', '2s', '--grace', '1h', '--', 'sh', '-c', body]);
    await until('both to print their pid', () => pidsIn(running.written.out).length === 2);
    await redis.down();
    await until('the process tree to be gone', () => !pidsIn(running.written.out).some(alive));
    await redis.up();
    expect((await line.run(['wait', 'q', 'x', '--timeout', '40s'])).code).toBe(0);
    running.signal('SIGTERM');
    expect((await running.ended).code).toBe(0);
    await redis.stop();
  });
});
