import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';
import { childrenOf, livingGroup } from './support/proc.js';
import { alive, inFolder, type Running, start } from './support/w8y.js';

let redis: RedisServer;
let prefix = '';
let count = 0;

beforeAll(async () => {
  redis = await RedisServer.start();
});
beforeEach(async () => {
  prefix = `kill${count++}`;
  await redis.client.rpush(`${prefix}:list`, 'a');
});
afterAll(() => redis.stop());

const begin = (...args: string[]): Running => start(['-u', redis.url, '-k', prefix, '-x', '1', '-q', ...args]);
const pidsIn = (out: string): number[] => [...out.matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid));

describe('a wrapper killed with SIGKILL', () => {
  it('has the process tree of its child killed while the lock is still held', async () => {
    const body = "trap '' TERM HUP; (echo pid $(exec sh -c 'echo $PPID'); sleep 65) & echo pid $$; sleep 65; sleep 65";
    const child = begin('-x', '5', 'sh', '-c', body);
    await until('both to print their pid', () => pidsIn(child.written.out).length === 2);
    const pids = pidsIn(child.written.out);
    child.signal('SIGKILL');
    await until('the process tree to be gone', () => !pids.some(alive) && livingGroup(pids[1]!).length === 0, {
      every: 5,
    });
    expect(await redis.client.exists(`${prefix}:lock:a`)).toBe(1);
    await child.ended;
  });

  it('also has descendants in their own sessions killed', async () => {
    const child = begin(
      '-x',
      '5',
      'sh',
      '-c',
      "setsid sh -c 'echo pid $$; sleep 66; sleep 66' & echo pid $$; sleep 66; sleep 66",
    );
    await until('both to print their pid', () => pidsIn(child.written.out).length === 2);
    child.signal('SIGKILL');
    await until('all of them to be gone', () => !pidsIn(child.written.out).some(alive));
    expect(await redis.client.exists(`${prefix}:lock:a`)).toBe(1);
  });

  it('has a nested wrapper killed, and the children of that wrapper', async () => {
    await redis.client.rpush(`${prefix}in:list`, 'b');
    const inner = ['-u', redis.url, '-k', `${prefix}in`, '-q', 'sh', '-c', 'echo pid $$; sleep 67; sleep 67'];
    const child = begin(process.execPath, new URL('../../dist/w8y.cjs', import.meta.url).pathname, ...inner);
    await child.says('pid');
    child.signal('SIGKILL');
    await until('the inner child to be gone', () => !pidsIn(child.written.out).some(alive));
  });

  it('has its child killed even if its guard was killed before', async () => {
    const child = begin('sh', '-c', 'echo pid $$; sleep 68; sleep 68');
    const [pid] = pidsIn(await child.says('pid'));
    const [guard] = childrenOf(child.pid).filter((each) => each !== pid);
    process.kill(guard!, 'SIGKILL');
    await until('another guard to start', () => childrenOf(child.pid).some((each) => each !== pid && each !== guard));
    child.signal('SIGKILL');
    await until('the child to be gone', () => !alive(pid!));
  });

  it('leaves no guard and no child behind when it ends by itself', async () => {
    const child = begin('sh', '-c', 'echo pid $$; sleep 0.3');
    const [pid] = pidsIn(await child.says('pid'));
    const [guard] = childrenOf(child.pid).filter((each) => each !== pid);
    expect(alive(guard!)).toBe(true);
    await child.ended;
    await until('the guard to be gone', () => !alive(guard!));
  });

  it('never lets its child overlap with the next holder, whenever it is killed', async () => {
    await inFolder(async (dir) => {
      for (let batch = 0; batch < 3; batch++) {
        const delays = [0, 1, 2, 3].map((i) => batch * 8 + i * 2);
        const logs = await Promise.all(delays.map((delay, i) => killAfter(delay, `${prefix}-${batch}-${i}`, dir)));
        for (const lines of logs) {
          expect(lines.slice(lines.indexOf('free') + 1)).toEqual(['next']);
        }
      }
    });
  });
});

/** Kills a wrapper this long after it took its lock, from before the fork to after the exec; returns who wrote what. */
async function killAfter(delay: number, ring: string, dir: string): Promise<string[]> {
  const file = join(dir, ring);
  appendFileSync(file, '');
  await redis.client.rpush(`${ring}:list`, 'a');
  const body = `while :; do echo busy >> ${file}; sleep 0.01; done`;
  const child = start(['-u', redis.url, '-k', ring, '-x', '1', '-cq', 'sh', '-c', body]);
  const held = async (): Promise<boolean> => (await redis.client.exists(`${ring}:lock:a`)) === 1;
  await until('the wrapper to hold the lock', held, { every: 1 });
  await new Promise((resolve) => setTimeout(resolve, delay));
  child.signal('SIGKILL');
  await child.ended;
  await until('the lock to expire', async () => !(await held()), { every: 5 });
  appendFileSync(file, 'free\n');
  await start(['-u', redis.url, '-k', ring, '-q', 'sh', '-c', `echo next >> ${file}; sleep 0.2`]).ended;
  return readFileSync(file, 'utf8').trimEnd().split('\n');
}
