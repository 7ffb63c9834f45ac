import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openRing, type Ring, type RingOptions } from '../../dist/ring/index.js';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';

let redis: RedisServer;
let prefix = '';
let count = 0;

beforeAll(async () => {
  redis = await RedisServer.start();
});
beforeEach(() => {
  prefix = `lib${count++}`;
});
afterAll(() => redis.stop());

async function withRing(options: RingOptions, body: (ring: Ring) => Promise<void>): Promise<void> {
  const ring = await openRing(redis.url, { prefix, ...options });
  try {
    await body(ring);
  } finally {
    await ring.close();
  }
}
const held = (item: string): Promise<number> => redis.client.exists(`${prefix}:lock:${item}`);

describe('for await (const item of ring)', () => {
  it('holds the lock while the body runs, and goes around forever', async () => {
    await withRing({}, async (ring) => {
      await ring.add('a', 'b');
      const seen: string[] = [];
      for await (const item of ring) {
        expect(await held(item.text)).toBe(1);
        seen.push(`${item}`);
        if (seen.length === 5) break;
      }
      expect(seen).toEqual(['a', 'b', 'a', 'b', 'a']);
      expect(await redis.client.keys(`${prefix}:lock:*`)).toEqual([]);
    });
  });

  it('frees the item when the body throws', async () => {
    await withRing({}, async (ring) => {
      await ring.add('a');
      const walk = async (): Promise<void> => {
        for await (const item of ring) throw new Error(`failed on ${item}`);
      };
      await expect(walk()).rejects.toThrow('failed on a');
      expect(await held('a')).toBe(0);
    });
  });

  it('refreshes the lock while a long body runs', async () => {
    await withRing({ expiry: 1 }, async (ring) => {
      await ring.add('a');
      for await (const item of ring) {
        const token = await redis.client.getBuffer(`${prefix}:lock:a`);
        await new Promise((resolve) => setTimeout(resolve, 1800));
        expect(await redis.client.getBuffer(`${prefix}:lock:a`)).toEqual(token);
        expect(item.signal.aborted).toBe(false);
        break;
      }
    });
  });

  it('aborts the signal of an item whose lock was taken by another holder, and does not free it', async () => {
    await withRing({ expiry: 1 }, async (ring) => {
      await ring.add('a');
      for await (const item of ring) {
        await redis.client.set(`${prefix}:lock:a`, 'another program');
        await until('the signal to be aborted', () => item.signal.aborted);
        expect(item.signal.reason).toMatchObject({ code: 'LEASE_LOST' });
        break;
      }
      expect(await redis.client.get(`${prefix}:lock:a`)).toBe('another program');
    });
  });

  it('waits while the ring is empty and picks up an item that is added later', async () => {
    await withRing({}, async (ring) => {
      setTimeout(() => void redis.client.rpush(`${prefix}:list`, 'late'), 300);
      for await (const item of ring) {
        expect(item.text).toBe('late');
        break;
      }
    });
  });

  it('ends when the ring is closed, from inside or outside the body', async () => {
    const ring = await openRing(redis.url, { prefix });
    await ring.add('a');
    for await (const _ of ring) await ring.close();
    expect(await held('a')).toBe(0);
    const empty = await openRing(redis.url, { prefix: `${prefix}empty` });
    setTimeout(() => void empty.close(), 100);
    for await (const _ of empty) throw new Error('there is nothing to get');
    const asked = await openRing(redis.url, { prefix: `${prefix}empty` });
    const answer = asked[Symbol.asyncIterator]().next();
    await asked.close(); // while the request is in flight
    expect(await answer).toEqual({ value: undefined, done: true });
  });

  it('lets two loops over one ring work side by side on different items', async () => {
    await withRing({}, async (ring) => {
      await ring.add('a', 'b');
      const one = ring[Symbol.asyncIterator]();
      const two = ring[Symbol.asyncIterator]();
      const first = await one.next();
      const second = await two.next();
      expect([String(first.value), String(second.value)]).toEqual(['a', 'b']);
      await Promise.all([one.return(), two.return()]);
      expect(await redis.client.keys(`${prefix}:lock:*`)).toEqual([]);
    });
  });
});

describe('other methods', () => {
  it('pass() goes around once', async () => {
    await withRing({}, async (ring) => {
      await ring.add('a', 'b', 'c');
      const seen: string[] = [];
      for await (const item of ring.pass()) seen.push(item.text);
      expect(seen).toEqual(['a', 'b', 'c']);
    });
  });

  it('take() returns one item to be released by hand, or nothing', async () => {
    await withRing({ rest: 60 }, async (ring) => {
      expect(await ring.take()).toBeUndefined();
      await ring.add('a');
      const item = await ring.take();
      expect(await ring.take()).toBeUndefined();
      await item?.release();
      await item?.release();
      expect(await redis.client.pttl(`${prefix}:lock:a`)).toBeGreaterThan(50_000);
    });
  });

  it('add(), items() and remove() handle bytes, many at a time', async () => {
    await withRing({}, async (ring) => {
      const bytes = Buffer.from([0, 255, 10]);
      expect(await ring.add(bytes, ...Array.from({ length: 2500 }, (_, i) => `${i}`))).toBe(2501);
      const items = await ring.items();
      expect(items[0]).toEqual(bytes);
      expect(items.slice(1).map(String)).toEqual(Array.from({ length: 2500 }, (_, i) => `${i}`));
      expect(await ring.remove(bytes)).toBe(1);
    });
  });

  it('refuse invalid options', async () => {
    await expect(openRing(redis.url, { expiry: 0.5 })).rejects.toMatchObject({ code: 'BAD_OPTION' });
    await expect(openRing(redis.url, { rest: -1 })).rejects.toMatchObject({ code: 'BAD_OPTION' });
    await expect(openRing('http://x')).rejects.toMatchObject({ code: 'BAD_URL' });
  });

  it('fail with an error code when the store cannot be reached', async () => {
    const ring = await openRing('redis://localhost:1');
    await expect(ring.take()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    await ring.close();
  });
});
