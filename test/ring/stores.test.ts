import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { openRing, type Ring } from '../../dist/ring/index.js';
import { openDatabase } from '../../dist/store/sqlite/file/driver.js';
import { freshPostgres, freshSqlite, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';
import { livingGroup } from './support/proc.js';
import { inFolder, run, start } from './support/w8y.js';

const texts = async (ring: Ring): Promise<string[]> => (await ring.items()).map(String);

describe.each([
  ['a SQLite file', freshSqlite],
  ['PostgreSQL', freshPostgres],
])('a ring on %s', (_name, fresh) => {
  let store: TestStore;
  let prefix = '';
  let count = 0;
  beforeAll(async () => {
    store = await fresh();
  });
  beforeEach(() => {
    prefix = `work${count++}`;
  });
  afterAll(() => store.stop());

  /** A ring of its own for the test to fill and inspect, and the options of w8y for it. */
  async function withRing(body: (ring: Ring, options: string[]) => Promise<void>): Promise<void> {
    const ring = await openRing(store.url, { prefix, expiry: 2 });
    try {
      await body(ring, ['-u', store.url, '-k', prefix, '-q']);
    } finally {
      await ring.close();
    }
  }

  it('behaves as on Redis: takes the left-most free item, moves it to the right end, returns the code', async () => {
    await withRing(async (ring, options) => {
      expect(await run([...options, 'echo', '{}'])).toMatchObject({ code: 0, out: '', err: '' });
      expect(await ring.add('a', 'b', 'c')).toBe(3);
      const taken = await ring.take();
      expect(String(taken)).toBe('a');
      expect(await run([...options, 'sh', '-c', 'echo {}; exit 7'])).toMatchObject({ code: 7, out: 'b\n' });
      expect(await texts(ring)).toEqual(['c', 'a', 'b']);
      await taken?.release();
    });
  });

  it('goes around forever, and leaves every item free', async () => {
    await withRing(async (ring) => {
      await ring.add('a', 'b');
      const seen: string[] = [];
      for await (const item of ring) {
        seen.push(item.text);
        if (seen.length === 5) break;
      }
      expect(seen).toEqual(['a', 'b', 'a', 'b', 'a']);
      const rest: string[] = [];
      for await (const item of ring.pass()) rest.push(item.text);
      expect(rest).toEqual(['b', 'a']);
    });
  });

  it('preserves every byte, shares one lock between duplicates, and removes by value', async () => {
    await withRing(async (ring) => {
      const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, i) => i));
      await ring.add(bytes, bytes, 'other');
      const first = await ring.take();
      expect(first?.bytes.equals(bytes)).toBe(true);
      expect(String(await ring.take())).toBe('other');
      expect(await ring.take()).toBeUndefined();
      expect(await ring.remove(bytes)).toBe(2);
      expect([await ring.remove(bytes), await texts(ring)]).toEqual([0, ['other']]);
    });
  });

  it('keeps and releases the lock of a running child; a killed wrapper loses it with its child', async () => {
    await withRing(async (ring, options) => {
      await ring.add('a');
      const child = start([...options, '-x', '1', 'sh', '-c', 'echo pid $$; sleep 69; sleep 69']);
      const pid = Number(/pid (\d+)/.exec(await child.says('pid'))?.[1]);
      await new Promise((resolve) => setTimeout(resolve, 1500));
      expect(await ring.take()).toBeUndefined();
      child.signal('SIGKILL');
      await until('the child to be gone', () => livingGroup(pid).length === 0);
      await until('the item to be free', async () => (await ring.take()) !== undefined);
    });
  });

  it('leaves an item alone for the time of --rest', async () => {
    await withRing(async (ring, options) => {
      await ring.add('a');
      await run([...options, '--rest', '60', 'true']);
      expect(await ring.take()).toBeUndefined();
    });
  });

  it('is shared by processes without an item ever having two holders', async () => {
    await withRing(async (ring, options) => {
      await ring.add('a', 'b', 'c');
      await inFolder(async (dir) => {
        const log = join(dir, 'log');
        appendFileSync(log, '');
        const body = `echo "+ {} $$" >> ${log}; echo "- {} $$" >> ${log}`;
        const args = [...options, '-c', '--stdin', 'null', '--max-items', '60', 'sh', '-c', body];
        const results = await Promise.all([1, 2, 3].map(() => run(args)));
        expect(results.map(({ code, err }) => ({ code, err }))).toEqual([1, 2, 3].map(() => ({ code: 0, err: '' })));
        const holders = new Map<string, string>();
        let rounds = 0;
        for (const line of readFileSync(log, 'utf8').trimEnd().split('\n')) {
          const [sign, item, who] = line.split(' ') as [string, string, string];
          expect(holders.get(item)).toBe(sign === '+' ? undefined : who);
          if (sign === '+') holders.set(item, who);
          else holders.delete(item);
          rounds += sign === '-' ? 1 : 0;
        }
        expect(rounds).toBe(180);
        expect((await texts(ring)).sort()).toEqual(['a', 'b', 'c']);
      });
    });
  });

  it('finds the only free item among thousands of locked ones', async () => {
    await withRing(async (ring) => {
      const items = Array.from({ length: 5000 }, (__, i) => `item${i}`);
      await ring.add(...items);
      await lockAll(store.url, prefix, 'item4999');
      expect(String(await ring.take())).toBe('item4999');
      expect(await texts(ring)).toEqual(items);
      expect(await ring.take()).toBeUndefined();
    });
  });
});

/** Another program locks every item but one. */
async function lockAll(url: string, prefix: string, except: string): Promise<void> {
  if (url.startsWith('sqlite:')) {
    const db = openDatabase(url.slice('sqlite:'.length));
    db.exec(
      `INSERT INTO ring_lock (lock, token, until) SELECT CAST('${prefix}:lock:' || CAST(item AS TEXT) AS BLOB), x'00', 9e15 FROM ring_list
        WHERE list = '${prefix}:list' AND item <> CAST('${except}' AS BLOB)`,
    );
    db.close();
    return;
  }
  const sql = postgres(inject('postgresUrl'), { max: 1 });
  const schema = sql(new URL(url).searchParams.get('schema')!);
  await sql`insert into ${schema}.ring_locks (key, token, until)
    select sha256(convert_to(${`${prefix}:lock:`}::text, 'UTF8') || item), '\\x00', 9e15 from ${schema}.ring_items
      where ring = ${`${prefix}:list`} and item <> convert_to(${except}::text, 'UTF8')`;
  await sql.end();
}
