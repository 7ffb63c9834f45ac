import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';
import { livingGroup } from './support/proc.js';
import { beating, lastBeat } from './support/pulse.js';
import { alive, inFolder, type Running, start } from './support/w8y.js';

let redis: RedisServer;
let prefix = '';
let key = '';
let count = 0;
const running: Running[] = [];

beforeAll(async () => {
  redis = await RedisServer.start();
});
beforeEach(async () => {
  prefix = `lock${count++}`;
  key = `${prefix}:lock:a`;
  await redis.client.rpush(`${prefix}:list`, 'a');
});
afterEach(async () => {
  for (const each of running.splice(0)) {
    each.signal('SIGCONT');
    each.signal('SIGTERM');
    await each.ended;
  }
});
afterAll(() => redis.stop());

const begin = (...args: string[]): Running => {
  const started = start(['-u', redis.url, '-k', prefix, '-x', '1', '-t', ...args]);
  running.push(started);
  return started;
};
const pidIn = (out: string): number => Number(/pid (\d+)/.exec(out)?.[1]);
const SLEEPER = ['sh', '-c', 'echo pid $$; sleep 63; sleep 63'];
const STUBBORN = ['sh', '-c', "trap '' TERM; (trap '' TERM; sleep 64) & echo pid $$; sleep 64; sleep 64"];

/** Takes the key as another program would, as soon as it is free. */
async function takeOver(): Promise<void> {
  await redis.client.set(key, 'another program', 'PX', 60_000);
}

describe('a lock that is kept', () => {
  it('is refreshed while the child runs, with the same token, and deleted at the end', async () => {
    const child = begin('sh', '-c', 'echo pid $$; sleep 1.5');
    await child.says('pid');
    const token = await redis.client.getBuffer(key);
    let looks = 0;
    let ended = false;
    void child.ended.then(() => {
      ended = true;
    });
    while (!ended) {
      const now = await redis.client.getBuffer(key);
      if (now) expect(now).toEqual(token);
      else await until('the child to end', () => ended, { within: 1000 });
      looks += now ? 1 : 0;
    }
    expect(looks).toBeGreaterThan(20);
    expect(await redis.client.exists(key)).toBe(0);
    expect(child.written.err).not.toMatch(/gone|lost|else/);
  });

  it('is refreshed about three times per expiry, and no more often', async () => {
    const child = begin('-x', '1', ...SLEEPER);
    await child.says('pid');
    await redis.client.config('RESETSTAT');
    const begun = Date.now();
    await until('some refreshes', async () => (await redis.calls('eval')) >= 4);
    const perExpiry = ((await redis.calls('eval')) * 1000) / (Date.now() - begun);
    expect(perExpiry).toBeGreaterThan(1.5);
    expect(perExpiry).toBeLessThan(4);
  });

  it('is kept while the child uses all available CPU time', async () => {
    const child = begin(
      'sh',
      '-c',
      'echo pid $$; end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do :; done; echo done',
    );
    await child.says('pid');
    const token = await redis.client.getBuffer(key);
    await child.says('done');
    expect(token).toHaveLength(20);
    expect((await child.ended).code).toBe(0);
    expect(child.written.err).not.toMatch(/gone|lost|else/);
  });
});

describe('a lock that is lost', () => {
  it('is taken back with the same token, and logged, when the key was deleted', async () => {
    const child = begin(...SLEEPER);
    await child.says('pid');
    const token = await redis.client.getBuffer(key);
    await redis.client.del(key);
    await child.complains('a: the lock had expired and was acquired again');
    expect(await redis.client.getBuffer(key)).toEqual(token);
  });

  it('ends the child with SIGTERM and the wrapper with 75 when it has another holder', async () => {
    const child = begin(
      '-c',
      'sh',
      '-c',
      'trap "echo got TERM; exit 0" TERM; echo pid $$; while :; do sleep 0.05; done',
    );
    await child.says('pid');
    await takeOver();
    const { code, out, err } = await child.ended;
    expect(code).toBe(75);
    expect(out).toContain('got TERM');
    expect(err).toContain('error: a: another worker holds the lock, ending the child');
    expect(await redis.client.get(key)).toBe('another program');
  });

  it('kills the process group after the grace period if SIGTERM is ignored', async () => {
    const child = begin('--grace', '0.3', ...STUBBORN);
    const pid = pidIn(await child.says('pid'));
    await takeOver();
    expect((await child.ended).code).toBe(75);
    await until('the group to be gone', () => livingGroup(pid).length === 0);
  });

  it('leaves the child alone with --on-lost=warn, and the lock of the other holder is never deleted', async () => {
    const child = begin('--on-lost=warn', 'sh', '-c', 'echo pid $$; sleep 2; exit 6');
    await child.says('pid');
    await takeOver();
    const { code, err } = await child.ended;
    expect(code).toBe(6);
    expect(err.match(/another worker holds the lock/g)).toHaveLength(1);
    expect(await redis.client.get(key)).toBe('another program');
  });

  it('is not deleted at the end if another holder has just taken it', async () => {
    const child = begin('-x', '60', 'sh', '-c', 'echo pid $$; sleep 0.7');
    await child.says('pid');
    await takeOver();
    const { code, err } = await child.ended;
    expect(code).toBe(0);
    expect(err).toContain('the lock was already lost at the end');
    expect(await redis.client.get(key)).toBe('another program');
  });

  it('counts as taken if its key has another type', async () => {
    const child = begin(...SLEEPER);
    await child.says('pid');
    await redis.client.del(key);
    await redis.client.lpush(key, 'x');
    expect((await child.ended).code).toBe(75);
    expect(await redis.client.type(key)).toBe('list');
  });
});

describe('a wrapper that was suspended beyond the expiry', () => {
  const stopUntilExpired = async (child: Running): Promise<void> => {
    child.signal('SIGSTOP');
    await until('the lock to expire', async () => (await redis.client.exists(key)) === 0);
  };

  it('takes the lock back if it is free', async () => {
    const child = begin(...SLEEPER);
    const pid = pidIn(await child.says('pid'));
    const token = await redis.client.getBuffer(key);
    await stopUntilExpired(child);
    child.signal('SIGCONT');
    await child.complains('the lock had expired and was acquired again');
    expect(await redis.client.getBuffer(key)).toEqual(token);
    expect(alive(pid)).toBe(true);
  });

  it('ends its child if another holder took the lock meanwhile', async () => {
    const child = begin(...SLEEPER);
    const pid = pidIn(await child.says('pid'));
    await stopUntilExpired(child);
    await takeOver();
    child.signal('SIGCONT');
    expect((await child.ended).code).toBe(75);
    expect(alive(pid)).toBe(false);
    expect(await redis.client.get(key)).toBe('another program');
  });

  it('also ends a child that was stopped with Ctrl-Z', async () => {
    const child = begin(...SLEEPER);
    await child.says('pid');
    child.signal('SIGTSTP');
    await until('the lock to expire', async () => (await redis.client.exists(key)) === 0);
    await takeOver();
    child.signal('SIGCONT');
    expect((await child.ended).code).toBe(75);
  });
});

describe('a Redis that goes away', () => {
  let own: RedisServer;
  beforeEach(async () => {
    own = await RedisServer.start();
    await own.client.rpush('own:list', 'a');
  });
  afterEach(() => own.stop());

  const beginOwn = (...args: string[]): Running => {
    const started = start(['-u', own.url, '-k', 'own', '-t', ...args]);
    running.push(started);
    return started;
  };

  it('and comes back empty before the deadline: the lock is taken back and the child continues', async () => {
    const long = beginOwn('-x', '6', ...SLEEPER);
    await long.says('pid');
    const token = await own.client.getBuffer('own:lock:a');
    await own.down();
    await own.up();
    await long.complains('the lock had expired and was acquired again');
    expect(await own.client.getBuffer('own:lock:a')).toEqual(token);
  });

  it.each([
    ['and stays away', () => own.down()],
    ['or hangs', async () => void process.kill(own.pid, 'SIGSTOP')],
  ])('%s: the wrapper uses its own clock and ends the child before the lock expires, exit 75', async (_, vanish) => {
    await inFolder(async (dir) => {
      const pulse = join(dir, 'pulse');
      const child = beginOwn('-x', '2', 'sh', '-c', beating(pulse));
      const pid = pidIn(await child.says('pid'));
      const end = Date.now() + (await own.client.pttl('own:lock:a'));
      await vanish();
      const { code, err } = await child.ended;
      expect(code).toBe(75);
      expect(err).toContain('the lock could not be refreshed in time, ending the child');
      expect(livingGroup(pid)).toEqual([]);
      expect(lastBeat(pulse)).toBeLessThan(end);
    });
  });

  it('or stays away with --on-lost=warn: the child continues', async () => {
    const child = beginOwn('-x', '1', '--on-lost', 'warn', 'sh', '-c', 'echo pid $$; sleep 2.5; exit 4');
    await child.says('pid');
    await own.down();
    const { code, err } = await child.ended;
    expect(code).toBe(4);
    expect(err).toContain('could not be refreshed in time');
    expect(err).toContain('lock not released');
  });
});
