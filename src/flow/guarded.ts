import { spawn } from 'node:child_process';
import { Guard } from '../ring/guard.js';
import { randomToken } from '../ring/random.js';

/** A guard that ends process groups when the runner is killed, and the environment by whose mark it finds those who left them. */
export function guarded(): { guard: Guard; env: NodeJS.ProcessEnv } {
  const mark = randomToken().toString('hex');
  return { guard: new Guard(spawn, `CRORE_RUN=${mark}`, () => {}), env: { ...process.env, CRORE_RUN: mark } };
}
