import { readdirSync, readFileSync } from 'node:fs';

/** Whether any process of a group is alive. Zombies do not count, and a container may have no process that reaps them. */
export function groupLives(group: number): boolean {
  try {
    process.kill(-group, 0);
  } catch {
    return false;
  }
  const pids = processes();
  return pids.length === 0 || pids.some((pid) => livesIn(pid, group));
}

/** Empty where the system does not list processes. */
function processes(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/** Parses `pid (name) state parent group …`, where the name may contain anything. */
function livesIn(pid: string, group: number): boolean {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state, , of] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return Number(of) === group && state !== 'Z' && state !== 'X';
  } catch {
    return false; // it has just exited
  }
}
