import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { childrenOf } from '../ring/support/proc.js';
import { alive, inFolder, type Running } from '../ring/support/w8y.js';
import { freePort } from '../support/redis.js';
import { freshSqlite } from '../support/stores.js';
import { until } from '../support/wait.js';
import { Line } from './support/crore.js';
import { type Desk, setUpDesk } from './support/setup.js';

const BIN = fileURLToPath(new URL('../../bin/crore', import.meta.url));

let { store, line, name, queue } = {} as Desk;
setUpDesk('pipes', freshSqlite, (desk) => {
  ({ store, line, name, queue } = desk);
});

/** Runs `crore ARGS` in a shell with `tail` behind it; the exit code is that of crore. */
function piped(args: string, tail: string, env: NodeJS.ProcessEnv = {}) {
  const script = `{ "$0" "$1" ${args}; echo "code $?" >&2; } ${tail}`;
  const { stdout, stderr } = spawnSync('sh', ['-c', script, process.execPath, BIN], {
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...process.env, CRORE_STORE: store.url, ...env },
  });
  return { stdout, stderr };
}

/** Starts `crore ARGS` with nobody to read its output and its errors. */
function unread(args: string[]) {
  const child = spawn(process.execPath, [BIN, ...args], { env: { ...process.env, CRORE_STORE: store.url } });
  child.stdout.destroy();
  child.stderr.destroy();
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  return { pid: child.pid!, ended, signal: (name: NodeJS.Signals) => child.kill(name) };
}

describe('a reader that is gone', () => {
  it.each(['config', 'config --json', 'queue ls', 'queue ls --json', 'worker ls', 'flow ls', '--help', '--version'])(
    'ends crore %s quietly, with exit code 0',
    async (args) => {
      await queue.add('x');
      expect(piped(args, '| true').stderr).toBe('code 0\n');
    },
  );

  it('does not change the exit code of a failure, even if its message is not read either', async () => {
    expect(await unread(['queue', 'ls', 'nowhere']).ended).toBe(1);
  });

  it('ends crore events at the next event', async () => {
    const watcher = line.start(['events', name, '--only', 'added']);
    await until('an event to be printed', async () => {
      await queue.add('probe');
      return watcher.written.out.includes('added');
    });
    watcher.closeOutput();
    await queue.add('last');
    expect(await watcher.ended).toMatchObject({ code: 0, err: '' });
  });

  it('does not end crore work', async () => {
    const worker = unread(['work', name, '--json', '--', 'true']);
    for (const id of ['a', 'b', 'c']) await (await queue.add('x', { id })).finished();
    expect(alive(worker.pid)).toBe(true);
    worker.signal('SIGTERM');
    expect(await worker.ended).toBe(0);
  });

  it('does not end crore serve, which says nothing about it', async () => {
    const port = await freePort();
    const args = ['serve', '--addr', 'localhost:0', '--http', `127.0.0.1:${port}`];
    const healthy = async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok;
    const server = line.start(args);
    server.closeOutput();
    await until('the server to answer', () => healthy().catch(() => false));
    server.signal('SIGTERM');
    expect((await server.ended).code).toBe(0);
    expect(server.written.err).not.toContain('EPIPE');
    const deaf = unread(args);
    await until('the server to answer', () => healthy().catch(() => false));
    deaf.signal('SIGTERM');
    expect(await deaf.ended).toBe(0);
  });
});

describe('output that cannot be written', () => {
  it('is an error in one line', async () => {
    await queue.add('x');
    expect(piped('queue ls', '>/dev/full').stderr).toBe('crore: cannot write the output: ENOSPC\ncode 1\n');
  });
});

describe('crore demo leaves nothing behind', () => {
  const demo = (dir: string): Running => new Line('').start(['demo'], { env: { TMPDIR: dir } });
  const started = (running: Running) => running.says('ready ');

  it('when nobody reads its output', async () => {
    await inFolder(async (dir) => {
      const { stdout, stderr } = piped('demo', '| head -1', { TMPDIR: dir });
      expect(stdout).toMatch(/^a producer and two worker processes.*\n$/);
      expect(stderr).toBe('code 0\n');
      expect(readdirSync(dir)).toEqual([]);
    });
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)('after %s', async (signal) => {
    await inFolder(async (dir) => {
      const running = demo(dir);
      await started(running);
      const workers = childrenOf(running.pid);
      running.signal(signal);
      expect(await running.ended).toMatchObject({ code: 0, err: '' });
      expect(running.written.out).toContain('accounted for');
      expect(readdirSync(dir)).toEqual([]);
      expect(workers.some(alive)).toBe(false);
    });
  });

  it('after several signals at once', async () => {
    await inFolder(async (dir) => {
      const running = demo(dir);
      await started(running);
      const workers = childrenOf(running.pid);
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGINT'] as const) running.signal(signal);
      await running.ended;
      expect(readdirSync(dir)).toEqual([]);
      await until('the workers to be gone', () => !workers.some(alive));
    });
  });

  it('when its store breaks', async () => {
    await inFolder(async (dir) => {
      const running = demo(dir);
      await started(running);
      const [stage] = readdirSync(dir);
      for (const file of readdirSync(join(dir, stage!))) rmSync(join(dir, stage!, file), { force: true });
      expect((await running.ended).code).toBeGreaterThan(0);
      expect(readdirSync(dir)).toEqual([]);
    });
  });
});
