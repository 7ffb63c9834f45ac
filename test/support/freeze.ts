import { readdirSync, readFileSync } from 'node:fs';
import { openDatabase } from '../../dist/store/sqlite/file/driver.js';
import { until } from './wait.js';

/**
 * Sends SIGSTOP while the process holds no lock on the store: one that is stopped within a transaction on a
 * SQLite file blocks all others, and no timeout of theirs can change that.
 */
export async function freeze(pid: number, url: string): Promise<void> {
  await until('the process is outside of transactions', async () => {
    process.kill(pid, 'SIGSTOP');
    await until('all its threads are stopped', () => threadStates(pid).every((state) => state === 'T'));
    if (isFree(url)) return true;
    process.kill(pid, 'SIGCONT');
    return false;
  });
}

function threadStates(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map(
    (thread) => readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8').split(') ').at(-1)![0]!,
  );
}

function isFree(url: string): boolean {
  if (!url.startsWith('sqlite:')) return true;
  const db = openDatabase(url.slice('sqlite:'.length));
  try {
    db.exec('BEGIN IMMEDIATE; ROLLBACK');
    return true;
  } catch {
    return false;
  } finally {
    db.close();
  }
}
