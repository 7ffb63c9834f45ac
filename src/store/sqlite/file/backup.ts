import { chmodSync, existsSync, rmSync } from 'node:fs';
import { CroreError } from '../../../errors.js';
import type { Database } from './driver.js';
import { translate } from './failure.js';

function removeQuietly(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // there is nothing to remove
  }
}

/** Writes a complete, compact copy of the database as it is now. Others may go on reading and writing it meanwhile. */
export function backUp(db: Database, shown: string, file: string): void {
  if (file === '' || file.includes('\0'))
    throw new CroreError('BAD_OPTION', 'backup: the file name is empty or invalid');
  if (existsSync(file)) throw new CroreError('BAD_OPTION', `backup: ${file} exists already`);
  const before = process.umask(0o077); // jobs may contain secrets
  try {
    db.prepare('VACUUM INTO ?').run(file);
    chmodSync(file, 0o600);
  } catch (error) {
    removeQuietly(file);
    throw translate(error, `${shown}: backup to ${file}`);
  } finally {
    process.umask(before);
  }
}
