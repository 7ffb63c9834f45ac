import { mkdirSync, readdirSync, unlinkSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { CroreError } from '../../errors.js';
import { removeIfEmpty } from '../input/module.js';

/** Files of a flow without its own store, in `.crore` next to the file it came from. */
export interface LocalState {
  /** File name prefix of the journal, which holds the completions so far. Removed on success. */
  journal: string;
  /** The store that launched workers join; it also holds the completions when there are such workers. Removed on success. */
  store: string;
  /** Cache records of nodes. Kept. */
  memories: string;
  remove: () => void;
  /** Whether an earlier run left state to resume from. */
  hasState: () => boolean;
  /** Removes the folder if it is empty. */
  removeIfEmpty: () => void;
}

/** The same file always maps to the same location, so that a later command finds the state of an earlier one. */
export function localState(file: string): LocalState {
  const path = resolve(file);
  const dir = join(dirname(path), '.crore');
  const base = join(dir, basename(path));
  // Matches only our own files, not those of a flow file whose name begins with the same text.
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

/** Creates the state folder, with a clear error where that fails. */
export function makeStateFolder(file: string): void {
  const dir = join(dirname(resolve(file)), '.crore');
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CroreError('STORE_READONLY', `cannot create ${dir} (${code}): use --store sqlite:FILE`);
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

/** Not `rmSync`, because that has to load a module first. */
export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // already removed, or not removable by us
  }
}
