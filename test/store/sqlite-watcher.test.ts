import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CommitWatcher } from '../../dist/store/sqlite/file/commit-watcher.js';
import type { Tables } from '../../dist/store/sqlite/tables.js';
import { until } from '../support/wait.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'crore-watcher-'));
  // Only file events count here, not the slow poll.
  vi.useFakeTimers({ toFake: ['setInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(dir, { recursive: true, force: true });
});

/** A file whose log is written once, and a connection that sees these versions of it, one after the other; the last one stays. */
async function watched(versions: number[]) {
  const file = join(dir, 'store.db');
  writeFileSync(`${file}-wal`, '');
  const seen = { commits: 0, looks: 0 };
  const get = () => {
    seen.looks += 1;
    return { data_version: versions.length > 1 ? versions.shift() : versions[0] };
  };
  const tables = { sql: () => ({ get }) } as unknown as Tables;
  const watcher = new CommitWatcher(file, tables, () => {
    seen.commits += 1;
  });
  watcher.start();
  writeFileSync(`${file}-wal`, 'frames');
  return { seen, stop: () => watcher.stop() };
}

it('a commit that is not there yet when the file changes is noticed without another change', async () => {
  const { seen, stop } = await watched([1, 1, 1, 1, 2]);
  await until('the commit is noticed', () => seen.commits === 1);
  stop();
});

it('a commit that follows one that was noticed is noticed, too, if its change of the file came before', async () => {
  const { seen, stop } = await watched([1, 2, 2, 2, 3]);
  await until('both commits are noticed', () => seen.commits === 2);
  stop();
});

it('stops looking some time after the last change', async () => {
  const { seen, stop } = await watched([1]);
  await until('it has looked', () => seen.looks > 5);
  let looks = 0;
  await until('it looks no more', async () => {
    looks = seen.looks;
    await new Promise((later) => setTimeout(later, 600));
    return seen.looks === looks;
  });
  expect(seen.commits).toBe(0);
  expect(looks).toBeLessThan(30);
  stop();
});
