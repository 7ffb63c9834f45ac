import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inFolder } from '../ring/support/w8y.js';
import { PostgresServer } from '../support/postgres.js';
import { RedisServer } from '../support/redis.js';
import { freshSqlite, type TestStore } from '../support/stores.js';
import { Line, objects } from './support/crore.js';
import { type Desk, setUpDesk } from './support/setup.js';

const STORES: [string, () => Promise<TestStore>][] = [
  ['sqlite', freshSqlite],
  ['redis', durableRedis],
  ...(process.env.CRORE_ALL_STORES ? [['postgres', durablePostgres] as [string, () => Promise<TestStore>]] : []),
];

/** A store that crore has nothing to warn about. */
async function durableRedis(): Promise<TestStore> {
  const redis = await RedisServer.start(['--appendonly', 'yes']);
  return { name: 'redis', url: redis.url, stop: () => redis.stop() };
}

async function durablePostgres(): Promise<TestStore> {
  const server = await PostgresServer.start({ fsync: 'on' });
  return { name: 'postgres', url: server.url, stop: () => server.stop() };
}

describe.each(STORES)('crore work on %s', (storeName, fresh) => {
  /** Tests that do not depend on the store run once. */
  const once = it.runIf(storeName === 'sqlite');
  let { line, name, queue } = {} as Desk;
  setUpDesk('work', fresh, (desk) => {
    ({ line, name, queue } = desk);
  });

  /** Works until nothing is ready. */
  const drain = (args: string[], input?: string) => line.run(['work', name, '--drain', '-q', ...args], { input });
  const states = async (...ids: string[]) =>
    Promise.all(ids.map(async (id) => (await queue.get(id))?.state ?? 'missing'));

  once('ends with exit code 69 when the database file is deleted', async () => {
    await inFolder(async (dir) => {
      const own = new Line(`sqlite:${join(dir, 'own.db')}`);
      expect((await own.run(['push', 'q', '1'])).code).toBe(0);
      const running = own.start(['work', 'q', '--', 'echo', 'started']);
      await running.says('started');
      for (const suffix of ['', '-wal', '-shm']) rmSync(join(dir, `own.db${suffix}`), { force: true });
      const { code, err } = await running.ended;
      expect(code).toBe(69);
      expect(err).toContain('deleted');
    });
  });

  it('replaces {} with the payload wherever it occurs, and never uses a shell', async () => {
    const odd = '$(touch /tmp/x) `id` "\' * \\ $& %s\n{}';
    await queue.addMany([{ payload: 'a' }, { payload: { b: [1] } }, { payload: 5 }, { payload: odd }]);
    const { code, out } = await drain(['--', 'printf', '%s|', '{}', 'x{}y{}']);
    expect(code).toBe(0);
    const each = ['a', '{"b":[1]}', '5', odd];
    expect(out).toBe(each.map((text) => `${text}|x${text}y${text}|`).join(''));
    expect(await queue.count()).toMatchObject({ ready: 0, done: 4 });
  });

  it('passes payload, id, queue, attempt and token in the environment', async () => {
    await queue.add({ to: 'ada' }, { id: 'job 1' });
    const names = ['PAYLOAD', 'ID', 'QUEUE', 'ATTEMPT', 'TOKEN'].map((word) => `CRORE_${word}`);
    const script = `console.log(JSON.stringify(${JSON.stringify(names)}.map((name) => process.env[name])))`;
    const { out } = await drain(['--', process.execPath, '-e', script]);
    const [payload, id, queueName, attempt, token] = JSON.parse(out) as string[];
    expect([payload, id, queueName, attempt]).toEqual(['{"to":"ada"}', 'job 1', name, '1']);
    expect(token).toMatch(/^1\b/);
  });

  once('passes the payload in a variable of another name, or only on standard input', async () => {
    await queue.add('p');
    const body = 'echo "$ITEM,$CRORE_PAYLOAD"';
    expect((await drain(['--env', 'ITEM', '--', 'sh', '-c', body])).out).toBe('p,\n');
    const bytes = Uint8Array.from([0, 1, 0xff, 10]);
    await queue.add(bytes);
    expect([...(await drain(['--stdin', '--', 'sh', '-c', 'cat; printf %s "$CRORE_PAYLOAD"'])).stdout]).toEqual([
      ...bytes,
    ]);
  });

  once('passes on its own standard input, output and error', async () => {
    await queue.add('a');
    const { out, err } = await drain(['--', 'sh', '-c', 'cat; echo oops >&2'], 'from stdin');
    expect({ out, err }).toEqual({ out: 'from stdin', err: 'oops\n' });
  });

  it('decides by the exit code: 0 is done, 100 is dead, 75 and all others are retried', async () => {
    const codes = [0, 100, 75, 1, 3, 4, 5];
    await queue.addMany(codes.map((code) => ({ payload: code, id: `c${code}`, backoff: '1h' })));
    const args = ['--exit-codes', '3=done,4=dead', '--exit-codes', '5=retry'];
    expect((await drain([...args, '--', 'sh', '-c', 'exit $1', 'sh', '{}'])).code).toBe(0);
    expect(await states(...codes.map((code) => `c${code}`))).toEqual([
      'done',
      'dead',
      'scheduled',
      'scheduled',
      'done',
      'dead',
      'scheduled',
    ]);
    expect(await queue.get('c100')).toMatchObject({ error: 'Fatal: exit code 100' });
    expect(await queue.get('c1')).toMatchObject({ error: 'Error: exit code 1', attempt: 1 });
  });

  it('retries while attempts are left, and reports how an executable was killed', async () => {
    await queue.add('x', { id: 'x', attempts: 3, backoff: 0 });
    const { out } = await drain(['--', 'sh', '-c', 'echo $CRORE_ATTEMPT; kill -SEGV $$']);
    expect(out).toBe('1\n2\n3\n');
    expect(await queue.get('x')).toMatchObject({ state: 'dead', error: 'Error: killed by SIGSEGV', attempt: 3 });
  });

  it('takes the last line of stdout as the result with --result: JSON if it parses, else text', async () => {
    const outputs = ['{"a":1}\n', 'some\ntext\n\n', '', '42', 'x'.repeat(300_000)];
    await queue.addMany(outputs.map((payload, i) => ({ payload: { payload }, id: `r${i}` })));
    const script =
      'process.stdout.write(JSON.parse(process.env.CRORE_PAYLOAD ?? require("fs").readFileSync(0)).payload)';
    const { out } = await drain(['--result', '--stdin', '--', process.execPath, '-e', script]);
    expect(out).toBe('');
    const jobs = await Promise.all(outputs.map((_x, i) => queue.get(`r${i}`)));
    expect(jobs.map((job) => job?.state)).toEqual(Array(5).fill('done'));
    expect(jobs.map((job) => job?.result)).toEqual([{ a: 1 }, 'text', undefined, 42, 'x'.repeat(300_000)]);
  });

  once('does not wait for a daemon that keeps the result pipe open', async () => {
    await queue.add('x', { id: 'x' });
    await drain(['--result', '--', 'sh', '-c', 'sleep 6 2>/dev/null & echo started']);
    expect(await queue.get('x')).toMatchObject({ state: 'done', result: 'started' });
  });

  it('passes raw tasks as their bytes, text or JSON; one that fails becomes a job', async () => {
    const bytes = Buffer.from([0x61, 0xff, 0xfe]);
    await queue.push([bytes]);
    expect((await drain(['--', 'printf', '%s', '{}'])).stdout).toEqual(bytes);
    await queue.push(['"quoted"', 'no json']);
    expect((await drain(['--tasks', 'json', '--', 'echo', '{}'])).out).toBe('quoted\n');
    expect((await queue.list('dead')).jobs).toMatchObject([{ error: 'Fatal: the task is not JSON' }]);
    await queue.push('fails');
    await drain(['--tasks', 'text', '--', 'sh', '-c', 'exit 100']);
    expect(await queue.count()).toMatchObject({ dead: 2, ready: 0, active: 0 });
  });

  once('makes a job dead whose payload cannot be passed to a process, and suggests a way that can', async () => {
    await queue.add('a\0b', { id: 'nul' });
    await queue.add('x'.repeat(200_000), { id: 'long' });
    const { code, err } = await line.run(['work', name, '--drain', '--', 'echo', '{}']);
    expect(code).toBe(0);
    expect(err).toContain('crore: nul: dead: cannot pass the payload to echo: it contains a NUL byte');
    expect(await states('nul', 'long')).toEqual(['dead', 'dead']);
    expect(await queue.retryDead()).toBe(2);
    await drain(['--stdin', '--', 'sh', '-c', 'cat >/dev/null']);
    expect(await states('nul', 'long')).toEqual(['done', 'done']);
  });

  it('runs as many jobs at once as -j allows', async () => {
    await inFolder(async (dir) => {
      await queue.addMany(Array.from({ length: 3 }, (_x, i) => ({ payload: i })));
      // Each waits until all of them have started.
      const body = 'touch $0/$1; while [ "$(ls $0 | wc -l)" -lt 3 ]; do sleep 0.02; done';
      expect((await drain(['-j', '3', '--', 'sh', '-c', body, dir, '{}'])).code).toBe(0);
      expect(await queue.count()).toMatchObject({ done: 3 });
    });
  });

  it('takes one job with --once, none if nothing is ready, and keeps the order of the rest', async () => {
    expect(await line.run(['work', name, '--once', '--', 'echo', '{}'])).toMatchObject({ code: 0, out: '' });
    await queue.addMany(['a', 'b', 'c'].map((id) => ({ payload: id, id })));
    await queue.add('later', { delay: '1h' });
    const { code, out, err } = await line.run(['work', name, '--once', '--', 'echo', '{}']);
    expect({ code, out }).toEqual({ code: 0, out: 'a\n' });
    expect(err).toMatch(/^crore: a: done, exit 0 after [\d.]+ s\n$/);
    const { jobs } = await queue.list('ready');
    expect(jobs.map(({ id, attempt }) => [id, attempt])).toEqual([
      ['b', 0],
      ['c', 0],
    ]);
  });

  once('prints an object for each job with --json, and nothing else on standard output', async () => {
    await queue.addMany([
      { payload: 0, id: 'good' },
      { payload: 100, id: 'bad' },
    ]);
    await queue.push('0');
    const args = ['work', name, '--drain', '--json', '--', 'sh', '-c', 'echo noise; exit $1', 'sh', '{}'];
    const { out, err } = await line.run(args);
    expect(err).toBe('noise\nnoise\nnoise\n');
    const told = objects(out).sort((a, b) => String(a.id).localeCompare(String(b.id)));
    expect(told.map(({ seconds, ...rest }) => [typeof seconds, rest])).toEqual([
      ['number', { queue: name, id: 'bad', attempt: 1, outcome: 'dead', exit: 100, signal: '' }],
      ['number', { queue: name, id: 'good', attempt: 1, outcome: 'done', exit: 0, signal: '' }],
      ['number', { queue: name, id: null, attempt: 1, outcome: 'done', exit: 0, signal: '' }],
    ]);
  });

  once('gives its job back and ends when the executable has disappeared', async () => {
    await inFolder(async (dir) => {
      const tool = join(dir, 'tool');
      writeFileSync(tool, `#!/bin/sh\necho ran >>${dir}/log; rm ${tool}\n`);
      chmodSync(tool, 0o755);
      await queue.addMany(['a', 'b'].map((id) => ({ payload: id, id })));
      const { code, err } = await drain(['--', tool]);
      expect({ code, err }).toEqual({ code: 1, err: `crore: cannot run ${tool}: not found\n` });
      expect(readFileSync(join(dir, 'log'), 'utf8')).toBe('ran\n');
      expect(existsSync(tool)).toBe(false);
      expect(await queue.get('b')).toMatchObject({ state: 'ready', attempt: 0 });
    });
  });
});
