import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Fatal } from '../../dist/index.js';
import { STORES } from '../support/stores.js';
import { deferred } from '../support/wait.js';
import { objects } from './support/crore.js';
import { type Desk, setUpDesk } from './support/setup.js';

describe.each(STORES)('operations on %s', (storeName, fresh) => {
  /** Tests that do not depend on the store run once. */
  const once = it.runIf(storeName === 'sqlite');
  let { store, line, crore, name, queue } = {} as Desk;
  setUpDesk('ops', fresh, (desk) => {
    ({ store, line, crore, name, queue } = desk);
  });

  /** Adds dead jobs, `d0` being the oldest. */
  async function kill(errors: string[]): Promise<void> {
    const worker = queue.work(async (job) => {
      throw new Fatal(String(job.payload));
    });
    for (const [i, payload] of errors.entries()) {
      await (await queue.add(payload, { id: `d${i}` })).finished().catch(() => {});
    }
    await worker.close();
  }
  const stateOf = async (id: string) => (await queue.get(id))?.state;

  once('job show: prints everything about jobs, and exits 1 if one does not exist', async () => {
    await queue.add({ to: 'ada' }, { id: 'a', delay: '1h', headers: { trace: 't1' }, priority: 3 });
    await queue.add(Uint8Array.from([0xff]), { id: 'b' });
    const { code, out, err } = await line.run(['job', 'show', name, 'a', 'nobody']);
    expect({ code, err }).toEqual({ code: 1, err: `crore: no job 'nobody' in queue '${name}'\n` });
    expect(out).toMatch(/^id +a\nqueue +ops-\d+\nstate +scheduled\npayload +\{"to":"ada"\}\nattempt +0 of 5\n/);
    expect(out).toMatch(/\ndue +\d{4}-\d\d-\d\dT[\d:.]+Z\n/);
    const [a, b] = await line.json('job', 'show', name, 'a', 'b');
    expect(a).toMatchObject({ id: 'a', state: 'scheduled', payload: { to: 'ada' }, headers: { trace: 't1' } });
    expect(a!.createdAt).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect(b).toMatchObject({ id: 'b', payloadBase64: '/w==' });
    expect((await line.run(['job', 'show', name, 'b'])).out).toMatch(/\npayload +\(encoded or binary, 1 bytes\)\n/);
    expect((await line.run(['job', 'ls', name])).out).toContain('(encoded or binary, 1 bytes)');
  });

  it('job ls: lists by state, in order, with a limit and a hint that there are more', async () => {
    await queue.addMany(Array.from({ length: 120 }, (_x, i) => ({ payload: i, id: `j${i}` })));
    await queue.add('later', { id: 'later', delay: '1h' });
    const first = await line.run(['job', 'ls', name]);
    expect(first.out.split('\n').slice(0, 3)).toEqual([
      expect.stringMatching(/^ID +STATE +ATTEMPT +TIME +PAYLOAD +ERROR$/),
      expect.stringMatching(/^later +scheduled /),
      expect.stringMatching(/^j0 +ready /),
    ]);
    expect(first.out.split('\n')).toHaveLength(102);
    expect(first.err).toContain('showing the first 100; there may be more');
    expect((await line.json('job', 'ls', name, '--state', 'ready', '--all')).map(({ id }) => id)).toEqual(
      Array.from({ length: 120 }, (_x, i) => `j${i}`),
    );
    const some = await line.json('job', 'ls', name, '--state', 'ready,scheduled', '--prefix', 'j11', '--limit', '3');
    expect(some.map(({ id }) => id)).toEqual(['j11', 'j110', 'j111']);
  });

  it('job cancel, retry, rm: apply to each job, and explain where they cannot', async () => {
    await kill(['bad luck']);
    await queue.add('x', { id: 'x' });
    const cancelled = await line.run(['job', 'cancel', name, 'x', 'd0', 'nobody', '--json']);
    expect(cancelled.code).toBe(1);
    expect(objects(cancelled.out)).toEqual([
      { queue: name, id: 'x', outcome: 'cancelled' },
      { queue: name, id: 'd0', outcome: 'refused', state: 'dead' },
      { queue: name, id: 'nobody', outcome: 'missing' },
    ]);
    expect(cancelled.err).toBe(`crore: job 'd0' is dead: it has ended\ncrore: no job 'nobody' in queue '${name}'\n`);
    expect(await line.run(['job', 'retry', name, 'd0'])).toMatchObject({ code: 0, out: 'd0  retried\n', err: '' });
    expect(await stateOf('d0')).toBe('ready');
    const refused = await line.run(['job', 'rm', name, 'd0', 'x']);
    expect(refused).toMatchObject({ code: 1, out: 'x  removed\n' });
    expect(refused.err).toContain("job 'd0' is ready: only ended jobs can be removed");
    expect([await stateOf('x'), await stateOf('d0')]).toEqual([undefined, 'ready']);
  });

  it('job cancel: cancels by filter, by state, or all, and prints how many', async () => {
    await queue.addMany([
      { payload: 'for ada', id: 'a1' },
      { payload: 'for bob', id: 'b1' },
      { payload: 'for ada', id: 'a2', delay: '1h' },
      { payload: 'for bob', id: 'b2', delay: '1h' },
      ...Array.from({ length: 700 }, (_x, i) => ({ payload: i, id: `many${i}` })),
    ]);
    const states = (...ids: string[]) => Promise.all(ids.map(stateOf));
    expect(await line.run(['job', 'cancel', name, '--match', 'ada'])).toMatchObject({ code: 0, out: '2 cancelled\n' });
    expect(await states('a1', 'a2', 'b1', 'b2')).toEqual(['cancelled', 'cancelled', 'ready', 'scheduled']);
    expect(await line.json('job', 'cancel', name, '--state', 'scheduled')).toEqual([{ queue: name, cancelled: 1 }]);
    expect(await states('b1', 'b2')).toEqual(['ready', 'cancelled']);
    const some = ['--prefix', 'many69', '--state', 'ready,active'];
    expect((await line.run(['job', 'cancel', name, ...some])).out).toBe('11 cancelled\n');
    expect((await line.run(['job', 'cancel', name, '--all'])).out).toBe('690 cancelled\n');
    expect(await queue.count()).toMatchObject({ ready: 0, scheduled: 0, cancelled: 704 });
    expect(await line.run(['job', 'cancel', name, '--all'])).toMatchObject({ code: 0, out: '0 cancelled\n', err: '' });
  });

  it('job rm: removes ended jobs by filter or all, and only those', async () => {
    await kill(['timeout at a', 'no such user']);
    await queue.add('waits', { delay: '1h' });
    expect(await line.json('job', 'rm', name, '--match', 'timeout')).toEqual([{ queue: name, removed: 1 }]);
    expect((await line.run(['job', 'rm', name])).code).toBe(2);
    expect(await line.json('job', 'rm', name, '--all')).toEqual([{ queue: name, removed: 1 }]);
    expect(await queue.count()).toMatchObject({ scheduled: 1, dead: 0 });
  });

  it('dead: lists with reasons, retries and removes by id, by match, or all', async () => {
    await kill(['timeout at a', 'no such user', 'timeout at b', 'disk full']);
    const { out } = await line.run(['dead', 'ls', name]);
    expect(out).toMatch(/^ID +STATE .*\nd3 +dead .* disk full +Fatal: disk full\nd2 /);
    expect((await line.json('dead', 'ls', name, '--match', 'timeout')).map(({ id }) => id)).toEqual(['d2', 'd0']);
    expect(await line.json('dead', 'retry', name, '--match', 'timeout')).toEqual([{ queue: name, retried: 2 }]);
    expect(await Promise.all(['d0', 'd1', 'd2', 'd3'].map(stateOf))).toEqual(['ready', 'dead', 'ready', 'dead']);
    const some = await line.run(['dead', 'rm', name, 'd1', 'd0']);
    expect(some).toMatchObject({ code: 1, out: 'd1  removed\n', err: "crore: job 'd0' is ready: it is not dead\n" });
    expect(await line.run(['dead', 'retry', name, '--all'])).toMatchObject({ code: 0, out: '1 retried\n' });
    expect(await line.run(['dead', 'rm', name, '--all'])).toMatchObject({ code: 0, out: '0 removed\n' });
    expect(await queue.count()).toMatchObject({ ready: 3, dead: 0 });
  });

  it('queue: counts, pauses, resumes, and clears only with confirmation', async () => {
    await queue.addMany([{ payload: 1 }, { payload: 2, delay: '1h' }]);
    await queue.push('task');
    expect((await line.run(['queue', 'ls', name])).out.split('\n')).toEqual([
      'QUEUE  BLOCKED  SCHEDULED  READY  ACTIVE  DONE  DEAD  CANCELLED  WORKERS'.replace(
        'QUEUE',
        'QUEUE'.padEnd(name.length),
      ),
      `${name}        0          1      2       0     0     0          0        0`,
      '',
    ]);
    expect(await line.run(['queue', 'pause', name])).toMatchObject({ code: 0, out: `${name}  paused\n` });
    expect(await line.json('queue', 'ls', name)).toMatchObject([{ queue: name, ready: 2, workers: 0, paused: true }]);
    const drained = await line.run(['work', name, '--drain', '-q', '--', 'true']);
    expect(drained.code).toBe(0);
    expect(await line.json('queue', 'resume', name)).toEqual([{ queue: name, outcome: 'resumed' }]);
    expect(await queue.isPaused()).toBe(false);
    const refused = await line.run(['queue', 'clear', name]);
    expect(refused).toMatchObject({ code: 2, out: '' });
    expect(refused.err).toContain('3 entries (0 of them running)');
    expect(await queue.count()).toMatchObject({ ready: 2, scheduled: 1 });
    expect(await line.json('queue', 'clear', name, '--yes')).toEqual([{ queue: name, outcome: 'cleared', entries: 3 }]);
    expect(await queue.count()).toMatchObject({ ready: 0, scheduled: 0 });
    expect(await line.run(['queue', 'ls', 'nowhere'])).toMatchObject({ code: 1, err: "crore: no queue 'nowhere'\n" });
  });

  it('worker ls: lists the workers and what they work on', async () => {
    const busy = deferred();
    const over = deferred();
    const worker = queue.work(
      async () => {
        busy.resolve();
        await over.promise;
      },
      { name: 'wanda', concurrency: 4 },
    );
    await queue.add('x');
    await busy.promise;
    const [row] = await line.json('worker', 'ls', name);
    expect(row).toMatchObject({ id: worker.id, queue: name, holds: 1, concurrency: 4, pid: process.pid });
    expect((await line.run(['worker', 'ls'])).out).toMatch(new RegExp(`\\n${worker.id} +${name} +1 +4 `));
    over.resolve();
    await worker.close();
    expect(await line.json('worker', 'ls', name)).toEqual([]);
  });

  it('wait: prints the result, and its exit code tells how the job ended', async () => {
    await queue.addMany(['text', 'object', 'nothing', 'dies', 'hangs'].map((id) => ({ payload: id, id })));
    await queue.add('x', { id: 'cancelled', delay: '1h' });
    const waiting = line.start(['wait', name, 'text']);
    const results: Record<string, unknown> = { text: 'two\nlines', object: { a: 1 } };
    const worker = queue.work(async (job) => {
      if (job.id === 'dies') throw new Fatal('no hope');
      if (job.id === 'hangs') job.snooze('1h');
      return results[job.id!];
    });
    expect(await waiting.ended).toMatchObject({ code: 0, out: 'two\nlines\n', err: '' });
    expect(await line.run(['wait', name, 'object'])).toMatchObject({ code: 0, out: '{"a":1}\n' });
    expect(await line.json('wait', name, 'object')).toEqual([
      { queue: name, id: 'object', state: 'done', result: { a: 1 } },
    ]);
    expect(await line.run(['wait', name, 'nothing'])).toMatchObject({ code: 0, out: '' });
    const dead = await line.run(['wait', name, 'dies', '--json']);
    expect(dead.code).toBe(100);
    expect(dead.err).toBe(`crore: job 'dies' of queue '${name}' is dead: Fatal: no hope\n`);
    expect(objects(dead.out)).toMatchObject([{ id: 'dies', state: 'dead', code: 'JOB_DEAD' }]);
    await line.run(['job', 'cancel', name, 'cancelled']);
    expect((await line.run(['wait', name, 'cancelled'])).code).toBe(101);
    expect((await line.run(['wait', name, 'hangs', '--timeout', '100ms'])).code).toBe(124);
    expect(await line.run(['wait', name, 'nobody'])).toMatchObject({
      code: 1,
      err: `crore: no job 'nobody' in queue '${name}'\n`,
    });
    await worker.close();
  });

  it('schedule: adds, lists, runs and removes schedules', async () => {
    const [added] = await line.json(
      'schedule',
      'add',
      name,
      name,
      '{"a":1}',
      '--cron',
      '0 4 * * *',
      '--timezone',
      'Europe/Berlin',
      '--priority',
      '7',
    );
    expect(added).toMatchObject({ name, queue: name, cron: '0 4 * * *', timezone: 'Europe/Berlin', catchUp: 'last' });
    await line.json('schedule', 'add', `${name}-often`, name, '--every', '90m');
    expect((await line.json('schedule', 'ls')).filter((each) => each.queue === name)).toMatchObject([
      added!,
      { name: `${name}-often`, every: 5_400_000 },
    ]);
    const { out } = await line.run(['schedule', 'ls']);
    expect(out).toMatch(new RegExp(`\\n${name} +${name} +0 4 \\* \\* \\* Europe/Berlin +\\d{4}-`));
    expect(out).toMatch(new RegExp(`\\n${name}-often +${name} +every 90m +\\d{4}-`));
    const id = (await line.run(['schedule', 'run', name])).out.trim();
    expect(await queue.get(id)).toMatchObject({ payload: { a: 1 }, priority: 7, headers: { 'crore-schedule': name } });
    const removed = await line.run(['schedule', 'rm', name, `${name}-often`, 'nobody']);
    expect(removed).toMatchObject({ code: 1, err: "crore: there is no schedule 'nobody'\n" });
    expect(removed.out).toBe(`${name}  removed\n${name}-often  removed\n`);
    expect((await crore.schedules()).filter((each) => each.queue === name)).toEqual([]);
  });

  once('control characters in ids and payloads do not reach the terminal', async () => {
    await queue.add('\x1b[2Jgone', { id: 'a\nb\x1b]0;title\x07' });
    const { out } = await line.run(['job', 'ls', name]);
    expect(out).toContain('a\\nb\\x1b]0;title\\x07');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not be in the output
    expect(out).not.toMatch(/[\x00-\x09\x0b-\x1f]/);
  });

  once('a reader that closes the pipe early causes no error', async () => {
    await queue.addMany(Array.from({ length: 3_000 }, (_x, i) => ({ payload: 'x'.repeat(50), id: `j${i}` })));
    const bin = fileURLToPath(new URL('../../bin/crore', import.meta.url));
    const pipe = `{ "$0" "$1" job ls ${name} --all; echo "code $?" >&2; } | head -2 | cut -c1-2`;
    const { stdout, stderr } = spawnSync('sh', ['-c', pipe, process.execPath, bin], {
      encoding: 'utf8',
      env: { ...process.env, CRORE_STORE: store.url },
    });
    expect({ stdout, stderr }).toEqual({ stdout: 'ID\nj0\n', stderr: 'code 0\n' });
    const help = spawnSync('sh', ['-c', '"$0" "$1" push --help | true', process.execPath, bin], { encoding: 'utf8' });
    expect(help.stderr).toBe('');
  });
});
