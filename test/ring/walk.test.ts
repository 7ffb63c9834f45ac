import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';
import { inFolder, type Running, run, start } from './support/w8y.js';

let redis: RedisServer;
let prefix = '';
let count = 0;
const running: Running[] = [];

beforeAll(async () => {
  redis = await RedisServer.start();
});
beforeEach(() => {
  prefix = `walk${count++}`;
});
afterAll(async () => {
  for (const each of running) each.signal('SIGKILL');
  await redis.stop();
});

const list = (): Promise<string[]> => redis.client.lrange(`${prefix}:list`, 0, -1);
const push = (...items: string[]): Promise<number> => redis.client.rpush(`${prefix}:list`, ...items);
const lock = (item: string): Promise<unknown> => redis.client.set(`${prefix}:lock:${item}`, 'somebody');
const w8y = (...args: string[]) => run(['-u', redis.url, '-k', prefix, ...args]);
const begin = (...args: string[]): Running => {
  const started = start(['-u', redis.url, '-k', prefix, ...args]);
  running.push(started);
  return started;
};

/** CPU seconds that a process has used. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

describe('a single run', () => {
  it('works on the left-most item, moves it to the right end and exits with the code of the child', async () => {
    await push('a', 'b', 'c');
    expect(await w8y('-q', 'sh', '-c', 'echo {}; exit 7')).toMatchObject({ code: 7, out: 'a\n', err: '' });
    expect(await list()).toEqual(['b', 'c', 'a']);
    expect(await redis.client.keys(`${prefix}:lock:*`)).toEqual([]);
  });

  it('holds the lock with 20 random bytes and an expiry while the child runs', async () => {
    await push('a');
    const wrapper = begin('-q', '-x', '7', '--stdin', 'null', 'sleep', '64');
    await until('the item to be locked', async () => (await redis.client.exists(`${prefix}:lock:a`)) === 1);
    const token = await redis.client.getBuffer(`${prefix}:lock:a`);
    const ttl = await redis.client.pttl(`${prefix}:lock:a`);
    expect(token).toHaveLength(20);
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(7000);
    wrapper.signal('SIGTERM');
    await wrapper.ended;
  });

  it('skips locked items and leaves the ring rotated just past the item it took', async () => {
    await push('a', 'b', 'c', 'd');
    await lock('a');
    await lock('b');
    expect(await w8y('-q', 'echo', '{}')).toMatchObject({ code: 0, out: 'c\n' });
    expect(await list()).toEqual(['d', 'a', 'b', 'c']);
  });

  it('exits 0 without a child on an empty ring, and on a fully locked one, which stays unchanged', async () => {
    expect(await w8y('-q', 'echo', '{}')).toMatchObject({ code: 0, out: '', err: '' });
    await push('a', 'b');
    await lock('a');
    await lock('b');
    expect(await w8y('-q', 'echo', '{}')).toMatchObject({ code: 0, out: '' });
    expect(await list()).toEqual(['a', 'b']);
  });

  it('adds the colon to a prefix only if missing, and accepts an empty prefix with a warning', async () => {
    await push('a');
    expect((await run(['-u', redis.url, '-k', `${prefix}:`, '-q', 'echo', '{}'])).out).toBe('a\n');
    await redis.client.rpush('list', 'bare');
    const { out, err } = await run(['-u', redis.url, 'echo', '{}']);
    await redis.client.del('list');
    expect(out).toBe('bare\n');
    expect(err).toContain('warning: no key prefix');
  });

  it('respects and sets locks with the legacy name with --lock-name=proc', async () => {
    await push('a', 'b');
    await redis.client.set(`${prefix}:proc:a`, 'an older program');
    await lock('b');
    const child = begin('-q', '--lock-name=proc', 'sh', '-c', 'echo {}; sleep 30');
    await child.says('b\n');
    expect(await redis.client.exists(`${prefix}:proc:b`)).toBe(1);
    child.signal('SIGTERM');
    await child.ended;
  });

  it('locks by value: two equal items are never worked on at the same time', async () => {
    await push('twin', 'twin', 'other');
    const first = begin('-q', 'sh', '-c', 'echo {}; sleep 30');
    await first.says('twin\n');
    expect(await w8y('-q', 'echo', '{}')).toMatchObject({ out: 'other\n' });
    expect(await w8y('-q', '-c', '--max-items', '1', 'echo', '{}')).toMatchObject({ out: 'other\n' });
    first.signal('SIGTERM');
    await first.ended;
  });

  it('finds the only free item of 10,000 in a few dozen round trips', async () => {
    const items = Array.from({ length: 10_000 }, (_, i) => `item${i}`);
    await push(...items);
    const pipeline = redis.client.pipeline();
    for (const item of items.slice(0, -1)) pipeline.set(`${prefix}:lock:${item}`, 'somebody');
    await pipeline.exec();
    await redis.client.config('RESETSTAT');
    expect(await w8y('-q', 'echo', '{}')).toMatchObject({ out: 'item9999\n' });
    expect((await redis.calls('eval')) + (await redis.calls('set'))).toBeLessThanOrEqual(36);
    expect(await list()).toEqual(items);
  });

  it('looks at no more items than the ring had at the start while items are added and removed', async () => {
    const items = Array.from({ length: 3000 }, (_, i) => `${i}`);
    await push(...items);
    for (const item of items) await lock(item);
    let done = false;
    const meddle = (async () => {
      for (let i = 0; !done; i++) {
        await push(`new${i}`);
        await lock(`new${i}`);
        await redis.client.lpop(`${prefix}:list`);
      }
    })();
    const result = await w8y('-q', 'echo', '{}');
    done = true;
    await meddle;
    expect(result.code).toBe(0);
    expect(await redis.client.llen(`${prefix}:list`)).toBe(3000);
  });
});

/** Waits until the polling interval has grown: no poll for a good part of the longest interval. */
async function atItsSlowest(): Promise<void> {
  await until('the polling interval to grow', async () => {
    const before = await redis.calls('eval');
    await new Promise((resolve) => setTimeout(resolve, 600));
    return before > 0 && (await redis.calls('eval')) === before;
  });
}

describe('-c', () => {
  it('continues while the exit code is in the list and exits with the first other one', async () => {
    await push('0', '0', '3', '4');
    expect(await w8y('-cq', '-i', '0', '-i', '3', 'sh', '-c', 'echo {}; exit {}')).toMatchObject({
      code: 4,
      out: '0\n0\n3\n4\n',
    });
  });

  it('has 0 in the list only if -i is not given', async () => {
    await push('3', '0');
    expect(await w8y('-cq', '-i', '3', 'sh', '-c', 'echo {}; exit {}')).toMatchObject({ code: 0, out: '3\n0\n' });
  });

  it('goes around repeatedly, and works on an item again when its turn comes', async () => {
    await push('a', 'b');
    expect(await w8y('-cq', '--max-items', '5', 'echo', '{}')).toMatchObject({ code: 0, out: 'a\nb\na\nb\na\n' });
  });

  it('waits while the ring is empty with only a few commands', async () => {
    const child = begin('-cq', 'echo', '{}');
    await atItsSlowest();
    await redis.client.config('RESETSTAT');
    const begun = Date.now();
    await until('the ring to be polled twice more', async () => (await redis.calls('eval')) >= 2);
    expect((await redis.calls('eval')) / ((Date.now() - begun) / 1000)).toBeLessThan(4);
    child.signal('SIGTERM');
    await child.ended;
  });

  it('waits at a fully locked ring of 10,000 at little cost, and soon sees a new item', async () => {
    const items = Array.from({ length: 10_000 }, (_, i) => `locked${i}`);
    await push(...items);
    await Promise.all(items.map(lock));
    const child = begin('-cq', 'echo', '{}');
    await atItsSlowest();
    await redis.client.config('RESETSTAT');
    const [used, begun] = [cpuSeconds(child.pid), Date.now()];
    await until('the ring to be polled a few times more', async () => (await redis.calls('eval')) >= 12);
    const seconds = (Date.now() - begun) / 1000;
    expect((await redis.calls('eval')) / seconds).toBeLessThan(8);
    // One per cent, plus two ticks of the kernel's clock, which counts hundredths of a second.
    expect(cpuSeconds(child.pid) - used).toBeLessThanOrEqual(0.01 * seconds + 0.02);
    await push('new');
    // the longest interval is a second; a slow machine needs time to start the child
    await child.says('new\n', 5_000);
    child.signal('SIGTERM');
    await child.ended;
  });

  it('survives a Redis outage between two items, and continues when it is back', async () => {
    const own = await RedisServer.start();
    try {
      const child = start(['-u', own.url, '-k', 'x', '-c', 'echo', '{}']);
      running.push(child);
      await until('the walk to start', async () => (await own.calls('eval')) > 0);
      await own.down();
      await child.complains('waiting for it');
      await own.up();
      await own.client.rpush('x:list', 'after');
      await child.says('after\n');
      expect(child.written.err).toContain('the store answers again');
      child.signal('SIGTERM');
      await child.ended;
    } finally {
      await own.stop();
    }
  });
});

describe('-j, --max-items and --rest', () => {
  it('keeps eight children busy from one process, each with its own item', async () => {
    await push(...'abcdefghij');
    await inFolder(async (dir) => {
      const child = begin('-cq', '-j', '8', '--stdin', 'null', 'sh', '-c', `: > ${dir}/{}; sleep 30`);
      const eight = async (): Promise<boolean> => (await redis.client.keys(`${prefix}:lock:*`)).length === 8;
      await until('eight locks to be held', eight);
      const { readdirSync } = await import('node:fs');
      await until('eight children to run', () => readdirSync(dir).length === 8);
      child.signal('SIGTERM');
      expect((await child.ended).code).toBe(143);
      expect(await redis.client.keys(`${prefix}:lock:*`)).toEqual([]);
    });
  });

  it('lets the other children finish when one ends the walk, and exits with its code', async () => {
    await push('3', '0');
    const body = 'if [ {} = 3 ]; then sleep 0.4; exit 3; fi; sleep 1; echo finished';
    expect(await w8y('-cq', '-j', '2', 'sh', '-c', body)).toMatchObject({ code: 3, out: 'finished\n' });
  });

  it('goes around the ring once with --max-items but without -c', async () => {
    await push('a', 'b', 'c');
    expect(await w8y('-q', '--max-items', '100', 'echo', '{}')).toMatchObject({ code: 0, out: 'a\nb\nc\n' });
  });

  it('works on one item per job without -c', async () => {
    await push('a', 'b', 'c');
    const { out } = await w8y('-q', '-j', '2', 'echo', '{}');
    expect(out.split('\n').sort()).toEqual(['', 'a', 'b']);
  });

  it('leaves an item alone for --rest seconds by letting its lock expire', async () => {
    await push('a');
    await w8y('-q', '--rest', '60', 'true');
    expect(await redis.client.pttl(`${prefix}:lock:a`)).toBeGreaterThan(50_000);
    expect(await w8y('-q', 'echo', '{}')).toMatchObject({ code: 0, out: '' });
  });

  it('returns to a rested item in the same walk', async () => {
    await push('a');
    expect(await w8y('-cq', '--rest', '0.3', '--max-items', '2', 'echo', '{}')).toMatchObject({
      code: 0,
      out: 'a\na\n',
    });
  });

  it('writes a job log with item, start, seconds, exit code and signal', async () => {
    await push('plain', 'with\ttab', 'boom');
    await inFolder(async (dir) => {
      const file = join(dir, 'jobs');
      await w8y(
        '-cq',
        '-i0,137,5',
        '--max-items',
        '3',
        '--joblog',
        file,
        'sh',
        '-c',
        '[ "$1" = boom ] && kill -9 $$; exit 5',
        'sh',
        '{}',
      );
      const rows = readFileSync(file, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => line.split('\t'));
      expect(rows.map(([item, , , code, signal]) => [item, code, signal])).toEqual([
        ['plain', '5', ''],
        ['with\\ttab', '5', ''],
        ['boom', '137', 'SIGKILL'],
      ]);
      for (const [, begun, seconds] of rows) {
        expect(Math.abs(Date.parse(begun!) - Date.now())).toBeLessThan(60_000);
        expect(Number(seconds)).toBeGreaterThan(0);
      }
    });
  });
});
