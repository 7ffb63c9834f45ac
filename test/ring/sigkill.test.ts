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
  it('takes the tree of its child with it while the lock still holds', async () => {
    const body = "trap '' TERM HUP; (echo pid $(exec sh -c 'echo $PPID'); sleep 65) & echo pid $$; sleep 65; sleep 65";
    const child = begin('-x', '5', 'sh', '-c', body);
    await until('both say their pid', () => pidsIn(child.written.out).length === 2);
    const pids = pidsIn(child.written.out);
    child.signal('SIGKILL');
    await until('the tree is gone', () => !pids.some(alive) && livingGroup(pids[1]!).length === 0, { every: 5 });
    expect(await redis.client.exists(`${prefix}:lock:a`)).toBe(1);
    await child.ended;
  });

  it('also takes descendants that made sessions of their own', async () => {
    const child = begin(
      '-x',
      '5',
      'sh',
      '-c',
      "setsid sh -c 'echo pid $$; sleep 66; sleep 66' & echo pid $$; sleep 66; sleep 66",
    );
    await until('both say their pid', () => pidsIn(child.written.out).length === 2);
    child.signal('SIGKILL');
    await until('all are gone', () => !pidsIn(child.written.out).some(alive));
    expect(await redis.client.exists(`${prefix}:lock:a`)).toBe(1);
  });

  it('takes a wrapper inside it, and the children of that one', async () => {
    await redis.client.rpush(`${prefix}in:list`, 'b');
    const inner = ['-u', redis.url, '-k', `${prefix}in`, '-q', 'sh', '-c', 'echo pid $$; sleep 67; sleep 67'];
    const child = begin(process.execPath, new URL('../../dist/w8y.cjs', import.meta.url).pathname, ...inner);
    await child.says('pid');
    child.signal('SIGKILL');
    await until('the inner child is gone', () => !pidsIn(child.written.out).some(alive));
  });

  it('has its child cleared away even when its guard had been killed before', async () => {
    const child = begin('sh', '-c', 'echo pid $$; sleep 68; sleep 68');
    const [pid] = pidsIn(await child.says('pid'));
    const [guard] = childrenOf(child.pid).filter((each) => each !== pid);
    process.kill(guard!, 'SIGKILL');
    await until('there is another guard', () => childrenOf(child.pid).some((each) => each !== pid && each !== guard));
    child.signal('SIGKILL');
    await until('the child is gone', () => !alive(pid!));
  });

  it('leaves nothing behind when it ends by itself: no guard, no child', async () => {
    const child = begin('sh', '-c', 'echo pid $$; sleep 0.3');
    const [pid] = pidsIn(await child.says('pid'));
    const [guard] = childrenOf(child.pid).filter((each) => each !== pid);
    expect(alive(guard!)).toBe(true);
    await child.ended;
    await until('the guard is gone', () => !alive(guard!));
  });

  it('never lets its child overlap the next holder, at whatever moment it is killed', async () => {
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

/** Kills a wrapper that long after it took its lock, from before the fork to well after the exec; gives back who wrote what. */
async function killAfter(delay: number, ring: string, dir: string): Promise<string[]> {
  const file = join(dir, ring);
  appendFileSync(file, '');
  await redis.client.rpush(`${ring}:list`, 'a');
  const body = `while :; do echo busy >> ${file}; sleep 0.01; done`;
  const child = start(['-u', redis.url, '-k', ring, '-x', '1', '-cq', 'sh', '-c', body]);
  const held = async (): Promise<boolean> => (await redis.client.exists(`${ring}:lock:a`)) === 1;
  await until('it holds the lock', held, { every: 1 });
  await new Promise((resolve) => setTimeout(resolve, delay));
  child.signal('SIGKILL');
  await child.ended;
  await until('the lock has ended', async () => !(await held()), { every: 5 });
  appendFileSync(file, 'free\n');
  await start(['-u', redis.url, '-k', ring, '-q', 'sh', '-c', `echo next >> ${file}; sleep 0.2`]).ended;
  return readFileSync(file, 'utf8').trimEnd().split('\n');
}
