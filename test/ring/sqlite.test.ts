import { appendFileSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openRing, type Ring } from '../../dist/ring/index.js';
import { openDatabase } from '../../dist/store/sqlite/file/driver.js';
import { until } from '../support/wait.js';
import { livingGroup } from './support/proc.js';
import { inFolder, run, start } from './support/w8y.js';

/** A ring in a temporary file, for the test to fill and inspect. */
async function withRing(body: (ring: Ring, url: string, file: string) => Promise<void>): Promise<void> {
  await inFolder(async (dir) => {
    const file = join(dir, 'ring.db');
    const ring = await openRing(`sqlite:${file}`, { prefix: 'work', expiry: 2 });
    try {
      await body(ring, `sqlite:${file}`, file);
    } finally {
      await ring.close();
    }
  });
}

const texts = async (ring: Ring): Promise<string[]> => (await ring.items()).map(String);

describe('a ring in a SQLite file', () => {
  it('behaves as on Redis: takes the left-most free item, moves it to the right end, returns the code', async () => {
    await withRing(async (ring, url) => {
      await ring.add('a', 'b', 'c');
      const taken = await ring.take();
      expect(String(taken)).toBe('a');
      expect(await run(['-u', url, '-k', 'work', '-q', 'sh', '-c', 'echo {}; exit 7'])).toMatchObject({
        code: 7,
        out: 'b\n',
      });
      expect(await texts(ring)).toEqual(['c', 'a', 'b']);
      await taken?.release();
    });
  });

  it('exits 0 when it is empty or does not exist yet, and creates files only the owner can read', async () => {
    await inFolder(async (dir) => {
      const file = join(dir, 'new.db');
      expect(await run(['-u', `sqlite:${file}`, '-k', 'w', '-q', 'echo', '{}'])).toMatchObject({
        code: 0,
        out: '',
        err: '',
      });
      expect(statSync(file).mode & 0o777).toBe(0o600);
    });
  });

  it('names a file that cannot be opened and exits 2', async () => {
    const { code, err } = await run(['-u', 'sqlite:/nowhere/ring.db', '-k', 'w', 'true']);
    expect(code).toBe(2);
    expect(err).toContain('/nowhere/ring.db');
  });

  it('accepts items inserted with plain SQL, as text or bytes', async () => {
    await withRing(async (ring, url, file) => {
      expect(await ring.items()).toEqual([]);
      const db = openDatabase(file);
      db.exec("INSERT INTO ring_list (list, item) VALUES ('work:list', 'typed'), ('work:list', x'ff0a')");
      db.close();
      const { stdout } = await run(['-u', url, '-k', 'work', '-q', '--max-items', '9', 'printf', '%s;', '{}']);
      expect(stdout).toEqual(Buffer.concat([Buffer.from('typed;'), Buffer.from([0xff, 0x0a]), Buffer.from(';')]));
    });
  });

  it('preserves every byte, shares one lock between duplicates, and removes by value', async () => {
    await withRing(async (ring) => {
      const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
      await ring.add(bytes, bytes, 'other');
      const first = await ring.take();
      expect(first?.bytes).toEqual(bytes);
      expect(String(await ring.take())).toBe('other');
      expect(await ring.take()).toBeUndefined();
      expect(await ring.remove(bytes)).toBe(2);
    });
  });

  it('keeps and releases the lock of a running child; a killed wrapper loses it with its child', async () => {
    await withRing(async (ring, url) => {
      await ring.add('a');
      const child = start(['-u', url, '-k', 'work', '-x', '1', '-q', 'sh', '-c', 'echo pid $$; sleep 69; sleep 69']);
      const pid = Number(/pid (\d+)/.exec(await child.says('pid'))?.[1]);
      await new Promise((resolve) => setTimeout(resolve, 1500));
      expect(await ring.take()).toBeUndefined();
      child.signal('SIGKILL');
      await until('the child to be gone', () => livingGroup(pid).length === 0);
      await until('the item to be free', async () => (await ring.take()) !== undefined);
    });
  });

  it('leaves an item alone for the time of --rest', async () => {
    await withRing(async (ring, url) => {
      await ring.add('a');
      await run(['-u', url, '-k', 'work', '-q', '--rest', '60', 'true']);
      expect(await ring.take()).toBeUndefined();
    });
  });

  it('is shared by processes without an item ever having two holders', async () => {
    await withRing(async (ring, url, file) => {
      await ring.add('a', 'b', 'c');
      const log = `${file}.log`;
      appendFileSync(log, '');
      const body = `echo "+ {} $$" >> ${log}; echo "- {} $$" >> ${log}`;
      const args = ['-u', url, '-k', 'work', '-cq', '--stdin', 'null', '--max-items', '150', 'sh', '-c', body];
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
      expect(rounds).toBe(450);
      expect((await texts(ring)).sort()).toEqual(['a', 'b', 'c']);
    });
  });

  it('finds the only free item among thousands of locked ones', async () => {
    await withRing(async (ring, _, file) => {
      const items = Array.from({ length: 5000 }, (__, i) => `item${i}`);
      await ring.add(...items);
      const db = openDatabase(file);
      db.exec(
        `INSERT INTO ring_lock (lock, token, until) SELECT CAST('work:lock:' || CAST(item AS TEXT) AS BLOB), x'00', 9e15 FROM ring_list WHERE item <> CAST('item4999' AS BLOB)`,
      );
      db.close();
      expect(String(await ring.take())).toBe('item4999');
      expect(await texts(ring)).toEqual(items);
    });
  });
});

describe('a locked SQLite file', () => {
  let release: (() => void) | undefined;
  beforeEach(() => {
    release = undefined;
  });
  afterEach(() => release?.());

  it('is waited for', async () => {
    await withRing(async (ring, _, file) => {
      await ring.add('a');
      const other = openDatabase(file);
      other.exec('BEGIN IMMEDIATE');
      release = () => other.close();
      const taking = ring.take();
      setTimeout(() => other.exec('COMMIT'), 200);
      expect(String(await taking)).toBe('a');
    });
  });
});
