import type { Committer } from './committer.js';
import type { Database } from './driver.js';
import { pragma } from './schema.js';

/** Pages returned per step: 8 MB, some ten milliseconds. */
const STEP = 2_000;
/** Fewer free pages than this are kept for the jobs to come, and so is a quarter of the file. */
const LEAST = 2_000;

/** Whether so much of the file is unused that it is worth returning. Files of earlier versions cannot shrink. */
function isWorthIt(db: Database): boolean {
  const free = pragma(db, 'freelist_count');
  return free > LEAST && free > pragma(db, 'page_count') / 4 && pragma(db, 'auto_vacuum') === 2;
}

/** Gives unused room in the file back to the disk, at most so many steps, each in a transaction of its own. */
export async function returnFreeSpace(db: Database, committer: Committer, steps: number): Promise<void> {
  for (let step = 0; step < steps && isWorthIt(db); step++) {
    await committer.run(() => db.prepare(`PRAGMA incremental_vacuum(${STEP})`).all());
  }
}
