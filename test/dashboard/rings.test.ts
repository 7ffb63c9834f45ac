import { hostname } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RingViews, ringViews } from '../../dist/dashboard/views/rings.js';
import { openRing } from '../../dist/ring/index.js';
import { openStore } from '../../dist/store/open.js';
import { openDatabase } from '../../dist/store/sqlite/file/driver.js';
import { inFolder, run, start } from '../ring/support/w8y.js';
import { RedisServer, startCluster } from '../support/redis.js';
import { ALL_STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';

describe.each(ALL_STORES)('rings in the dashboard, on %s', (name, fresh) => {
  let store: TestStore;
  let views: RingViews;
  beforeAll(async () => {
    store = await fresh();
    views = ringViews(store.url);
  });
  afterAll(async () => {
    await views.close();
    await store.stop();
  });
  const fill = async (prefix: string, ...items: (string | Buffer)[]): Promise<void> => {
    const ring = await openRing(store.url, { prefix });
    await ring.add(...items);
    await ring.close();
  };

  it('are none in a store that has none', async () => {
    expect(await views.rings()).toMatchObject({ rings: [], more: false });
    expect(await views.ring('nope:list')).toBeUndefined();
  });

  it('show who works on which item while w8y runs, and nobody when it has ended', async () => {
    await fill('work', 'a', 'b', 'c');
    const child = start(['-u', store.url, '-k', 'work', '-x', '2', '-q', 'sh', '-c', 'echo on; read line'], {
      open: true,
    });
    await child.says('on');
    const view = await until('the holder', async () => {
      const seen = await views.ring('work:list');
      return seen?.held?.[0]?.holder?.pid ? seen : undefined;
    });
    const { holder } = view!.held![0]!;
    expect(view!.held).toMatchObject([
      { item: 'a', holder: { host: hostname(), token: expect.stringMatching(/^[0-9a-f]{40}$/) } },
    ]);
    expect(holder!.since! <= view!.now && holder!.until > view!.now - 1_000).toBe(true);
    expect(view!.items.map(({ item }) => item)).toEqual(['b', 'c', 'a']);
    expect(view!.items[2]!.holder).toEqual({ ...holder, until: expect.any(Number) });
    expect((await views.rings()).rings).toEqual([{ name: 'work:list', items: 3, locked: 1 }]);
    child.endInput();
    await child.ended;
    expect((await views.ring('work:list'))!.items.every((item) => item.holder === undefined)).toBe(true);
  });

  it('show which items rest, and the names of other locks', async () => {
    await fill('calm', 'a');
    await run(['-u', store.url, '-k', 'calm', '--lock-name', 'proc', '-q', '--rest', '60', 'true']);
    const view = (await views.ring('calm:list'))!;
    expect(view.held).toMatchObject([{ item: 'a', holder: { resting: true, host: hostname() } }]);
    expect(view.held![0]!.holder!.until - view.now).toBeGreaterThan(50_000);
  });

  it('keep a holder as long as it works, longer than its lock would last', async () => {
    await fill('long', 'a');
    const child = start(['-u', store.url, '-k', 'long', '-x', '1', '-q', 'sh', '-c', 'echo on; read line'], {
      open: true,
    });
    await child.says('on');
    const holder = async () => (await views.ring('long:list'))?.held?.[0]?.holder;
    const first = await until('the holder', async () => ((await holder())?.pid ? holder() : undefined));
    await until('the lock to be refreshed twice', async () => (await holder())!.until > first!.until + 1_000);
    expect(await holder()).toEqual({ ...first, until: expect.any(Number) });
    child.endInput();
    await child.ended;
  });

  it('show items of any bytes, and pages of two hundred', async () => {
    await fill('many', Buffer.from([0xff, 0x00]), '<b>', ...Array.from({ length: 448 }, (_, i) => `item${i}`));
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const page = (await views.ring('many:list', after))!;
      expect(page.items.length).toBeLessThanOrEqual(200);
      seen.push(...page.items.map(({ item }) => item));
      after = page.after;
    } while (after !== undefined);
    expect([seen.length, seen[0], seen[1], seen[449]]).toEqual([450, '\\xff\\x00', '<b>', 'item447']);
    await expect(views.ring('many:list', '-1')).rejects.toMatchObject({ code: 'BAD_OPTION' });
  });

  it('show the locks of programs that say nothing about themselves with their token alone', async () => {
    await fill('shared', 'a');
    if (name === 'redis') {
      const redis = await openRedis(store.url);
      await redis.set('shared:lock:a', Buffer.alloc(20, 7), 'PX', 60_000);
      redis.disconnect();
    } else if (name === 'postgres') {
      const sql = postgres(store.url.replace(/\?.*/, ''), { max: 1 });
      const table = sql(`${new URL(store.url).searchParams.get('schema')}.ring_locks`);
      await sql`insert into ${table} (key, token, until) values (sha256('shared:lock:a'), ${Buffer.alloc(20, 7)}, ${Date.now() + 60_000})`;
      await sql.end();
    } else {
      const db = openDatabase(store.url.slice('sqlite:'.length));
      db.prepare('INSERT INTO ring_lock (lock, token, until) VALUES (?, ?, ?)').run(
        Buffer.from('shared:lock:a'),
        Buffer.alloc(20, 7),
        Date.now() + 60_000,
      );
      db.close();
    }
    const [item] = (await views.ring('shared:list'))!.items;
    expect(item!.holder).toEqual({ token: '07'.repeat(20), until: expect.any(Number) });
  });
});

async function openRedis(url: string) {
  const { Redis } = await import('ioredis');
  return new Redis(url);
}

describe('what a ring tells about itself on Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterAll(() => redis.stop());

  it('is not needed: a user who may write only the list and the locks works as ever', async () => {
    await redis.client.call('ACL', 'SETUSER', 'strict', 'on', '>secret', '~w:list', '~w:lock:*', '+@all');
    await redis.client.rpush('w:list', 'a');
    const url = `redis://strict:secret@localhost:${redis.port}`;
    expect(await run(['-u', url, '-k', 'w', '-q', 'echo', '{}'])).toMatchObject({ code: 0, out: 'a\n', err: '' });
    expect(await redis.client.keys('*')).toEqual(['w:list']);
  });

  it('leaves only the registry when it is over', async () => {
    await redis.client.rpush('u:list', 'a');
    await run(['-u', redis.url, '-k', 'u', '-q', 'true']);
    expect((await redis.client.keys('*')).sort()).toEqual(['crore:rings', 'u:list', 'w:list']);
  });

  it('is written without another round trip: the commands of the ring do not wait for it', async () => {
    await redis.client.rpush('x:list', 'a');
    await redis.client.config('RESETSTAT');
    await run(['-u', redis.url, '-k', 'x', '-q', 'true']);
    // take, release and the registry, once in a minute
    expect(await redis.calls('eval')).toBe(3);
    const ring = await openRing(redis.url, { prefix: 'x' });
    await redis.client.config('RESETSTAT');
    for (let i = 0; i < 5; i++) await (await ring.take())!.release();
    expect([await redis.calls('eval'), await redis.calls('zadd')]).toEqual([11, 1]);
    await ring.close();
  });

  it('lists at most a thousand rings, the latest, and none of a month ago', async () => {
    const rows = Array.from({ length: 1_200 }, (_, i) => [
      Date.now() - i - 10,
      JSON.stringify([`r${i}:list`, `r${i}:lock:`]),
    ]);
    await redis.client.zadd(
      'crore:rings',
      ...rows.flat(),
      Date.now() - 31 * 86_400_000,
      '["old:list","old:lock:"]',
      1,
      'junk',
    );
    await redis.client.rpush('v:list', 'a');
    await run(['-u', redis.url, '-k', 'v', '-q', 'true']);
    expect(await redis.client.zcard('crore:rings')).toBe(1_000);
    const views = ringViews(redis.url);
    const { rings, more } = await views.rings();
    expect([rings.some((ring) => ring.name === 'v:list'), more]).toEqual([true, true]);
    expect(await views.ring('old:list')).toBeUndefined();
    await views.close();
  });

  it('works on a cluster', async () => {
    const cluster = await startCluster();
    const views = ringViews(cluster.url);
    try {
      const ring = await openRing(cluster.url, { prefix: '{tag}' });
      await until('the ring to be filled', () => ring.add('a', 'b').catch(() => undefined));
      const taken = await ring.take();
      await until('the holder', async () => (await views.ring('{tag}:list'))?.held?.[0]?.holder?.pid === process.pid);
      expect((await views.rings()).rings).toMatchObject([{ name: '{tag}:list', locked: 1 }]);
      await taken!.release();
      await ring.close();
    } finally {
      await views.close();
      await cluster.stop();
    }
  });
});

describe('a SQLite file', () => {
  it('that began as a ring may become a store, and a foreign one may not', async () => {
    await inFolder(async (dir) => {
      const url = `sqlite:${join(dir, 'ring.db')}`;
      const ring = await openRing(url, { prefix: 'work' });
      await ring.add('a');
      const store = await openStore(url, { timeout: 5_000 });
      await store.close();
      expect((await ring.items()).map(String)).toEqual(['a']);
      await ring.close();
      const db = openDatabase(join(dir, 'other.db'));
      db.exec('CREATE TABLE ringing (n)');
      db.close();
      await expect(openStore(`sqlite:${join(dir, 'other.db')}`, { timeout: 5_000 })).rejects.toMatchObject({
        code: 'STORE_CORRUPT',
      });
    });
  });

  it('of an earlier version shows its rings, and who holds what as soon as a new process has used it', async () => {
    await inFolder(async (dir) => {
      const file = join(dir, 'ring.db');
      const db = openDatabase(file);
      db.exec(`CREATE TABLE ring_list (position INTEGER PRIMARY KEY, list TEXT NOT NULL, item BLOB NOT NULL);
        CREATE INDEX ring_list_order ON ring_list (list, position);
        CREATE TABLE ring_lock (lock BLOB PRIMARY KEY, token BLOB NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
        INSERT INTO ring_list (list, item) VALUES ('work:list', 'a')`);
      db.close();
      const views = ringViews(`sqlite:${file}`);
      expect(await views.rings()).toMatchObject({ rings: [{ name: 'work:list', items: 1, locked: 0 }] });
      const ring = await openRing(`sqlite:${file}`, { prefix: 'work' });
      const taken = await ring.take();
      expect((await views.ring('work:list'))!.held).toMatchObject([{ item: 'a', holder: { pid: process.pid } }]);
      await taken!.release();
      await ring.close();
      await views.close();
    });
  });
});
