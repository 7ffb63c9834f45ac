import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { CroreError } from '../errors.js';
import { removeIfEmpty } from './module.js';

/** Files of a flow that has no store of its own, in `.crore` beside the file it came from. */
export interface PrivatePlace {
  /** What this run has done so far: removed on success. */
  store: string;
  /** What cached nodes were made of: kept. */
  memories: string;
  exists: boolean;
  remove: () => void;
}

/** The same file always has the same place, so that a later command finds what an earlier one has left. */
export function privatePlace(file: string, name: string): PrivatePlace {
  const path = resolve(file);
  const dir = join(dirname(path), '.crore');
  const short = createHash('sha256').update(path).digest('hex').slice(0, 8);
  const store = join(dir, `${name}-${short}.db`);
  return {
    store: `sqlite:${store}`,
    memories: `sqlite:${join(dir, `${name}-${short}.cache`)}`,
    exists: existsSync(store),
    remove: () => {
      for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${store}${suffix}`, { force: true });
      removeIfEmpty(dir);
    },
  };
}

/** Makes the place; said clearly where that cannot be. */
export function makePlace(file: string): void {
  const dir = join(dirname(resolve(file)), '.crore');
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CroreError('STORE_READONLY', `cannot make ${dir} (${code}): give --store sqlite:FILE`);
  }
}
