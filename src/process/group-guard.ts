import { spawn } from 'node:child_process';
import { OrphanGuard } from './orphan-guard.js';
import { randomToken } from './random.js';

/** A guard that ends process groups when the runner is killed, and the environment by whose mark it finds those who left them. */
export function guardProcessGroups(): { guard: OrphanGuard; env: NodeJS.ProcessEnv } {
  const mark = randomToken().toString('hex');
  return { guard: new OrphanGuard(spawn, `CRORE_RUN=${mark}`, () => {}), env: { ...process.env, CRORE_RUN: mark } };
}
