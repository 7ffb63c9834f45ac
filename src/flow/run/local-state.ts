import { mkdirSync, readdirSync, unlinkSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { CroreError } from '../../errors.js';
import { removeIfEmpty } from '../input/module.js';

/** Files of a flow that has no store of its own, in `.crore` beside the file it came from. */
export interface LocalState {
  /** The ends of nodes so far: what the name of each such file begins with. Removed on success. */
  journal: string;
  /** The store that launched workers join, with the ends in it where there are such workers. Removed on success. */
  store: string;
  /** What cached nodes were made of: kept. */
  memories: string;
  remove: () => void;
  /** Whether a run has left something to go on from. */
  hasState: () => boolean;
  /** Where nothing came of it. */
  removeIfEmpty: () => void;
}

/** The same file always has the same place, so that a later command finds what an earlier one has left. */
export function localState(file: string): LocalState {
  const path = resolve(file);
  const dir = join(dirname(path), '.crore');
  const base = join(dir, basename(path));
  // Nobody else's, such as those of a file whose name begins alike.
  const ours = new RegExp(`^${escaped(basename(path))}\\.(run\\d+(\\.\\d+)?|db(-wal|-shm|-journal)?)$`);
  return {
    journal: `${base}.run`,
    store: `sqlite:${base}.db`,
    memories: `sqlite:${base}.cache`,
    hasState: () => namesIn(dir).some((name) => ours.test(name)),
    remove: () => {
      for (const name of namesIn(dir)) if (ours.test(name)) removeFile(join(dir, name));
      removeIfEmpty(dir);
    },
    removeIfEmpty: () => removeIfEmpty(dir),
  };
}

/** Makes the place; said clearly where that cannot be. */
export function makeStateFolder(file: string): void {
  const dir = join(dirname(resolve(file)), '.crore');
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CroreError('STORE_READONLY', `cannot make ${dir} (${code}): give --store sqlite:FILE`);
  }
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

export function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

/** Not `rmSync`, which has a module to load first. */
export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // gone, or not ours to remove
  }
}
