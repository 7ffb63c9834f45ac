import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessInfo {
  pid: number;
  state: string;
  parent: number;
  group: number;
}

/** All processes according to /proc, except those that end meanwhile. */
export function processes(): ProcessInfo[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const [state, parent, group] = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
        return [{ pid: Number(name), state: state!, parent: Number(parent), group: Number(group) }];
      } catch {
        return [];
      }
    });
}

export function livingGroup(group: number): number[] {
  return processes()
    .filter((each) => each.group === group && each.state !== 'Z')
    .map((each) => each.pid);
}

export function childrenOf(pid: number): number[] {
  return processes()
    .filter((each) => each.parent === pid)
    .map((each) => each.pid);
}
