import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { open } from '../../dist/index.js';
import { openStore } from '../../dist/store/open.js';
import { loadLibrary } from '../../dist/store/sqlite/file/driver.js';
import { Line } from '../cli/support/crore.js';

let dir: string;
let line: Line;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'crore-file-'));
  line = new Line(`sqlite:${join(dir, 'jobs.db')}`);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));
const at = (name: string) => join(dir, name);

async function readyIn(file: string): Promise<number> {
  await using crore = await open(`sqlite:${file}`);
  return (await crore.queue('q').count()).ready;
}

describe('a database file', () => {
  it('is complete by itself after the last command has ended', async () => {
    expect(await line.run(['push', 'q', '1', '2', '3'])).toMatchObject({ code: 0 });
    copyFileSync(at('jobs.db'), at('copy.db'));
    expect(await readyIn(at('copy.db'))).toBe(3);
  });

  it('can be copied with backup while it is in use, with the mode of the original', async () => {
    await using crore = await open(`sqlite:${at('jobs.db')}`);
    await crore.queue('q').addMany(Array.from({ length: 500 }, (_x, i) => ({ payload: i })));
    await crore.backup(at('library.db'));
    const done = await line.run(['backup', at('command.db')]);
    expect(done).toMatchObject({ code: 0, out: `${at('command.db')}  written\n` });
    await crore.queue('q').add('after the copies');
    for (const name of ['library.db', 'command.db']) {
      expect(await readyIn(at(name))).toBe(500);
      expect(statSync(at(name)).mode & 0o777).toBe(0o600);
    }
  });

  it('is not backed up over an existing file, into nowhere, or where the store is no file', async () => {
    await using crore = await open(`sqlite:${at('jobs.db')}`);
    await crore.queue('q').add(1);
    writeFileSync(at('precious'), 'precious');
    await expect(crore.backup(at('precious'))).rejects.toMatchObject({ code: 'BAD_OPTION' });
    expect(statSync(at('precious')).size).toBe(8);
    await expect(crore.backup(at('no/such/folder'))).rejects.toThrow(/no\/such\/folder/);
    expect(existsSync(at('no'))).toBe(false);
    await using redis = await open(inject('redisUrl'), { onError: () => {} });
    await expect(redis.backup(at('redis.db'))).rejects.toMatchObject({ code: 'STORE_UNSUPPORTED' });
  });

  it('gives its room back after a large queue was cleared', async () => {
    const size = () => statSync(at('jobs.db')).size;
    const crore = await open(`sqlite:${at('jobs.db')}`);
    const queue = crore.queue<string>('q');
    for (let i = 0; i < 30; i++)
      await queue.addMany(Array.from({ length: 1_000 }, () => ({ payload: 'x'.repeat(1_000) })));
    await crore.close();
    const full = size();
    expect(full).toBeGreaterThan(30_000_000);
    const again = await open(`sqlite:${at('jobs.db')}`);
    await again.queue('q').obliterate();
    await again.close();
    expect(size()).toBeLessThan(full / 2);
  });

  it('waits for the disk with each commit unless its URL says otherwise, which is worth a warning', async () => {
    const levels: [string, number, RegExp | undefined][] = [
      ['', 2, undefined],
      ['?synchronous=full', 2, undefined],
      ['?synchronous=NORMAL', 1, /power failure/],
    ];
    for (const [query, level, warning] of levels) {
      const seen: number[] = [];
      const { library } = loadLibrary();
      class Watched extends library.DatabaseSync {
        override close(): void {
          seen.push(Number(this.prepare('PRAGMA synchronous').get()?.synchronous));
          super.close();
        }
      }
      const store = await openStore(`sqlite:${join(dir, 'level.db')}${query}`, {
        timeout: 5_000,
        library: { DatabaseSync: Watched },
      });
      await store.close();
      expect(seen).toEqual([level]);
      expect(store.warnings).toEqual(warning ? [expect.stringMatching(warning)] : []);
    }
    await expect(openStore(`sqlite:${join(dir, 'x.db')}?synchronous=off`, { timeout: 1_000 })).rejects.toMatchObject({
      code: 'BAD_URL',
    });
  });
});
