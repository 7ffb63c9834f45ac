import { readdirSync, readFileSync } from 'node:fs';

/** Whether somebody in a process group is alive. Zombies are not, and in a container there may be nobody to reap them. */
export function groupLives(group: number): boolean {
  try {
    process.kill(-group, 0);
  } catch {
    return false;
  }
  const pids = processes();
  return pids.length === 0 || pids.some((pid) => livesIn(pid, group));
}

/** None where the system does not show them. */
function processes(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/** `pid (name) state parent group …`, where the name may hold anything. */
function livesIn(pid: string, group: number): boolean {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state, , of] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return Number(of) === group && state !== 'Z' && state !== 'X';
  } catch {
    return false; // it has just gone
  }
}
