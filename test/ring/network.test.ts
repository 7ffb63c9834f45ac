import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Line } from '../support/proxy.js';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';
import { beating, lastBeat } from './support/pulse.js';
import { inFolder, type Running, start } from './support/w8y.js';

let redis: RedisServer;
let proxy: Line;
let prefix = '';
let count = 0;

beforeAll(async () => {
  redis = await RedisServer.start();
});
beforeEach(async () => {
  prefix = `net${count++}`;
  proxy = new Line(redis.port);
  await proxy.listen();
  await redis.client.rpush(`${prefix}:list`, 'a');
});
afterEach(() => proxy.close());
afterAll(() => redis.stop());

const begin = (...args: string[]): Running =>
  start(['-u', `redis://127.0.0.1:${proxy.port}`, '-k', prefix, '-t', ...args]);
const SLEEPER = ['sh', '-c', 'echo pid $$; sleep 71; sleep 71'];
const lock = (): string => `${prefix}:lock:a`;

describe('an unreliable network', () => {
  it('that keeps dropping the connection neither ends the child nor loses the lock', async () => {
    const child = begin('-x', '2', ...SLEEPER);
    await child.says('pid');
    const token = await redis.client.getBuffer(lock());
    for (let i = 0; i < 12; i++) {
      proxy.cut();
      await new Promise((resolve) => setTimeout(resolve, 250));
      expect(await redis.client.getBuffer(lock())).toEqual(token);
    }
    child.signal('SIGTERM');
    expect((await child.ended).code).toBe(143);
    expect(await redis.client.exists(lock())).toBe(0);
  });

  it('that loses the reply to a take makes no second holder: the item is worked on after the expiry', async () => {
    let lost = 0;
    proxy.onReply = () => {
      if (lost++ === 1) proxy.cut();
      return lost !== 2;
    };
    await redis.client.del(`${prefix}:list`);
    const child = begin('-c', '-x', '1', 'sh', '-c', 'echo pid $$; exit 3');
    await until('the ring to be looked at once', () => lost === 1);
    await redis.client.rpush(`${prefix}:list`, 'a');
    const { code, out } = await child.ended;
    expect({ code, children: out.match(/pid/g)?.length }).toEqual({ code: 3, children: 1 });
    expect(await redis.client.exists(lock())).toBe(0);
  });

  it('that delays the reply starts no child on a lock that is about to expire', async () => {
    let late = true;
    proxy.onReply = async () => {
      if (late) await new Promise((resolve) => setTimeout(resolve, 600));
      late = false;
      return true;
    };
    const child = begin('-x', '1', ...SLEEPER);
    const { code, out } = await child.ended;
    expect({ code, out }).toEqual({ code: 0, out: '' });
    expect(await redis.client.exists(lock())).toBe(0);
  });

  it('is not blamed when the wrapper was suspended while it waited for a reply', async () => {
    const child = begin('-x', '1', ...SLEEPER);
    await child.says('pid');
    let answer = (): void => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let asked = false;
    proxy.onReply = async () => {
      asked = true;
      await answered;
      return true;
    };
    await until('the wrapper to wait for a reply', () => asked, { every: 1 });
    child.signal('SIGSTOP');
    await until('the lock to expire', async () => (await redis.client.exists(lock())) === 0);
    answer();
    child.signal('SIGCONT');
    await child.complains('the lock had expired and was acquired again');
    child.signal('SIGTERM');
    expect((await child.ended).code).toBe(143);
  });

  it('that drops everything makes the wrapper end its child before the lock expires', async () => {
    await inFolder(async (dir) => {
      const pulse = join(dir, 'pulse');
      const child = begin('-x', '2', 'sh', '-c', beating(pulse));
      await child.says('pid');
      proxy.deaf = true;
      const end = Date.now() + (await redis.client.pttl(lock()));
      expect((await child.ended).code).toBe(75);
      expect(lastBeat(pulse)).toBeLessThan(end);
    });
  });
});
