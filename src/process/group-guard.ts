import { spawn } from 'node:child_process';
import { OrphanGuard } from './orphan-guard.js';
import { randomToken } from './random.js';

/**
 * A guard that kills process groups when the runner is killed, and an environment with the mark by which the guard
 * finds processes that left their group.
 */
export function guardProcessGroups(): { guard: OrphanGuard; env: NodeJS.ProcessEnv } {
  const mark = randomToken().toString('hex');
  return { guard: new OrphanGuard(spawn, `CRORE_RUN=${mark}`, () => {}), env: { ...process.env, CRORE_RUN: mark } };
}
