import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openRing, type Ring } from '../../dist/ring/index.js';
import { openDatabase } from '../../dist/store/sqlite/file/driver.js';
import { inFolder, run } from './support/w8y.js';

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

const _texts = async (ring: Ring): Promise<string[]> => (await ring.items()).map(String);

describe('a ring in a SQLite file', () => {
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
