import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';
import { childrenOf, livingGroup } from './support/proc.js';
import { alive, BIN, inFolder, Running, start } from './support/w8y.js';

let redis: RedisServer;
let prefix = '';
let count = 0;

beforeAll(async () => {
  redis = await RedisServer.start();
});
beforeEach(async () => {
  prefix = `signal${count++}`;
  await redis.client.rpush(`${prefix}:list`, 'a');
});
afterAll(() => redis.stop());

const begin = (...args: string[]): Running => start(['-u', redis.url, '-k', prefix, '-q', ...args]);
const locks = (): Promise<number> => redis.client.exists(`${prefix}:lock:a`);
/** A child that prints the signal it received, and exits with 40 if it was a terminating one. */
const REPORTER = `
for name in TERM INT HUP QUIT; do trap "echo got $name; exit 40" $name; done
trap 'echo got USR1' USR1; trap 'echo got USR2' USR2
echo ready; while :; do sleep 0.05; done`;

describe('a signal to the wrapper', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const)(
    '%s is forwarded; the wrapper waits for the child, frees the item and exits with its code',
    async (name) => {
      const child = begin('-c', 'sh', '-c', REPORTER);
      await child.says('ready\n');
      child.signal(name);
      const { code, out } = await child.ended;
      expect({ code, out }).toEqual({ code: 40, out: `ready\ngot ${name.slice(3)}\n` });
      expect(await locks()).toBe(0);
    },
  );

  it.each(['SIGUSR1', 'SIGUSR2'] as const)('%s is forwarded to the child and ends nothing', async (name) => {
    const child = begin('sh', '-c', REPORTER);
    await child.says('ready\n');
    child.signal(name);
    await child.says(`got ${name.slice(3)}\n`);
    expect(await locks()).toBe(1);
    child.signal('SIGTERM');
    expect((await child.ended).code).toBe(40);
  });

  it('results in 128+n when the child is killed by it', async () => {
    const child = begin('-c', 'sh', '-c', 'echo ready; sleep 30');
    await child.says('ready\n');
    child.signal('SIGTERM');
    expect(await child.ended).toMatchObject({ code: 143, signal: null });
  });

  it('ends a continuous walk even if the child succeeds', async () => {
    const child = begin('-c', 'sh', '-c', 'trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done');
    await child.says('ready\n');
    child.signal('SIGTERM');
    expect(await child.ended).toMatchObject({ code: 0, out: 'ready\n' });
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('%s twice kills the whole process group', async (name) => {
    const body = "trap '' TERM INT; (trap '' TERM INT; echo inner $$; sleep 62) & echo pid $$; sleep 62; sleep 62";
    const child = begin('sh', '-c', body);
    const pid = Number(/pid (\d+)/.exec(await child.says('pid '))?.[1]);
    await child.says('inner');
    child.signal(name);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(alive(pid)).toBe(true);
    child.signal(name);
    expect((await child.ended).code).toBe(137);
    await until('the group to be gone', () => livingGroup(pid).length === 0);
    expect(await locks()).toBe(0);
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
    ['SIGQUIT', 131],
  ] as const)('%s ends a wrapper that waits without a child, with %i', async (name, code) => {
    await redis.client.del(`${prefix}:list`);
    await redis.client.config('RESETSTAT');
    const child = begin('-c', 'true');
    await until('the wrapper to wait', async () => (await redis.calls('eval')) > 1);
    child.signal(name);
    expect(await child.ended).toMatchObject({ code, signal: null });
  });

  it('SIGUSR1 does not affect a wrapper that waits', async () => {
    await redis.client.del(`${prefix}:list`);
    await redis.client.config('RESETSTAT');
    const child = begin('-c', 'echo', '{}');
    await until('the wrapper to wait', async () => (await redis.calls('eval')) > 1);
    child.signal('SIGUSR1');
    await redis.client.rpush(`${prefix}:list`, 'later');
    await child.says('later\n');
    child.signal('SIGTERM');
    expect((await child.ended).err).toBe('');
  });

  it('SIGTSTP also stops the child, and SIGCONT resumes both', async () => {
    // The child starts no program of its own: a shell whose vfork is stopped before its exec shows D instead of T.
    const child = begin('sh', '-c', 'echo pid $$; exec sleep 63');
    const pid = Number(/pid (\d+)/.exec(await child.says('pid '))?.[1]);
    child.signal('SIGTSTP');
    await until(
      () => `both to stop: ${stateOf(pid)} ${stateOf(child.pid)} ${child.written.err}`,
      () => stateOf(pid) === 'T' && stateOf(child.pid) === 'T',
    );
    child.signal('SIGCONT');
    await until('both to continue', () => stateOf(pid) !== 'T' && stateOf(child.pid) !== 'T');
    child.signal('SIGTERM');
    expect((await child.ended).code).toBe(143);
  });
});

describe('a terminal', () => {
  it('can be read by the child, and Ctrl-C reaches the child', async () => {
    await inFolder(async (dir) => {
      const file = join(dir, 'typescript');
      // The shell that `script` starts must be replaced: a dash in the foreground would be ended by the Ctrl-C itself.
      const body = [
        'process.on("SIGINT", () => { console.log("interrupted"); process.exitCode = 3; process.stdin.destroy(); });',
        'process.stdin.once("data", (text) => console.log("read", text.toString()));',
      ].join(' ');
      const line = `exec ${BIN} -u ${redis.url} -k ${prefix} -q ${process.execPath} -e '${body}'`;
      const terminal = spawn('script', ['-qec', line, file], { stdio: ['pipe', 'pipe', 'pipe'] });
      const session = new Running(terminal);
      terminal.stdin.write('hello\r');
      await session.says('read hello');
      terminal.stdin.write('\x03');
      const { code, out } = await session.ended;
      expect(out).toContain('interrupted');
      expect(code).toBe(3);
    });
  });
});

/** A container may forbid new namespaces, and then no process can be PID 1 of one. */
const canUnshare = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0;

describe.skipIf(!canUnshare)('running as PID 1', () => {
  it('reaps orphans, forwards signals and exits with the code of the child', async () => {
    const body = `
      trap 'echo got TERM; exit 9' TERM
      i=0; while [ $i -lt 5 ]; do sh -c '(sleep 0.1) & exit 0'; i=$((i+1)); done
      sleep 0.6
      echo zombies $(grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l)
      while :; do sleep 0.05; done`;
    const command = ['unshare', '--pid', '--fork', '--mount-proc', BIN];
    const box = start(['-u', redis.url, '-k', prefix, '-q', 'sh', '-c', body], { command });
    expect(await box.says('zombies')).toContain('zombies 0\n');
    const inner = childrenOf(box.pid)[0]!;
    process.kill(inner, 'SIGTERM');
    const { code, out } = await box.ended;
    expect(out).toContain('got TERM');
    expect(code).toBe(9);
    expect(await locks()).toBe(0);
  });

  it('also gives the child its stdin', async () => {
    const command = ['unshare', '--pid', '--fork', '--mount-proc', BIN];
    const box = start(['-u', redis.url, '-k', prefix, '-q', 'cat'], { command, input: 'through the parent' });
    expect(await box.ended).toMatchObject({ code: 0, out: 'through the parent' });
  });
});

function stateOf(pid: number): string {
  return /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '';
}
