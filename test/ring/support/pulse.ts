import { readFileSync } from 'node:fs';

/** A shell script that ignores SIGTERM and writes the time every few milliseconds while it lives. */
export function beating(file: string): string {
  return `trap '' TERM; date +%s%3N >> ${file}; echo pid $$; while :; do date +%s%3N >> ${file}; sleep 0.01; done`;
}

export function lastBeat(file: string): number {
  return Math.max(...readFileSync(file, 'utf8').trim().split('\n').map(Number));
}
