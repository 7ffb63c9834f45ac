import type { ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import type { ChildCommand } from './child-command.js';
import { now } from './clock.js';
import type { OrphanGuard } from './orphan-guard.js';

/** How a child ended, or why it was not started. `code` is the exit code for the wrapper. */
export interface ChildExit {
  readonly code: number;
  readonly signal: string;
  /** Set when nothing was started. */
  readonly failure: string;
}

/** A child that leads its own process group, so that its whole tree can be signalled and no other process. */
export class Child {
  readonly ended: Promise<ChildExit>;
  private readonly process: ChildProcess | undefined;
  private over = false;
  private killer: NodeJS.Timeout | undefined;
  private killAt = Number.POSITIVE_INFINITY;

  constructor(start: typeof spawn, plan: ChildCommand, guard: OrphanGuard) {
    guard.ready();
    try {
      this.process = launch(start, plan);
    } catch (error) {
      this.ended = Promise.resolve(startFailure(plan.file, error as NodeJS.ErrnoException));
      return;
    }
    if (this.pid) guard.watch(this.pid);
    this.ended = outcome(this.process, plan.file).then((result) => {
      this.over = true;
      clearTimeout(this.killer);
      // If we end the child, we kill its whole group: another process is about to take over its work, and nothing it
      // left behind may continue that work.
      if (this.killer) this.signalGroup('SIGKILL');
      if (this.pid) guard.forget(this.pid);
      return result;
    });
  }

  get pid(): number | undefined {
    return this.process?.pid;
  }

  /** The child's output, if its command asks for a pipe. */
  get stdout(): Readable | null {
    return this.process?.stdout ?? null;
  }

  /** The same for its standard error. */
  get stderr(): Readable | null {
    return this.process?.stderr ?? null;
  }

  /** Signals only the child. */
  signal(name: NodeJS.Signals): void {
    if (!this.over) this.kill(this.pid ?? 0, name);
  }

  /** Signals the child and everything it started that stayed in its group, even after the child itself has exited. */
  signalGroup(name: NodeJS.Signals): void {
    this.kill(-(this.pid ?? 0), name);
  }

  /**
   * Sends SIGTERM to the whole group and kills the rest after the grace period; a second call can only shorten that
   * period.
   */
  end(graceMs: number): void {
    if (this.over) return;
    const killAt = now() + graceMs;
    if (killAt < this.killAt) {
      clearTimeout(this.killer);
      this.killer = setTimeout(() => this.signalGroup('SIGKILL'), graceMs);
      this.killAt = killAt;
    }
    this.signalGroup('SIGTERM');
    // A stopped process receives SIGTERM only when it continues.
    this.signalGroup('SIGCONT');
  }

  private kill(target: number, name: NodeJS.Signals): void {
    if (target === 0) return;
    try {
      process.kill(target, name);
    } catch {
      // Already gone, or we may not signal it: nothing more can be done.
    }
  }
}

function launch(start: typeof spawn, plan: ChildCommand): ChildProcess {
  const item = Buffer.isBuffer(plan.stdin) ? plan.stdin : undefined;
  const child = start(plan.file, [...plan.args], {
    env: plan.env,
    detached: true,
    stdio: [item ? 'pipe' : (plan.stdin as 'inherit' | 'ignore'), plan.stdout ?? 'inherit', plan.stderr ?? 'inherit'],
  });
  // A child that does not read its input is not an error.
  child.stdin?.on('error', () => {});
  child.stdin?.end(item);
  return child;
}

function outcome(child: ChildProcess, file: string): Promise<ChildExit> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(startFailure(file, error)));
    child.once('exit', (code, signal) => {
      const number = signal ? constants.signals[signal] : 0;
      resolve({ code: code ?? 128 + number, signal: signal ?? '', failure: '' });
    });
  });
}

function startFailure(file: string, { code, message }: NodeJS.ErrnoException): ChildExit {
  if (code === 'ENOENT') return { code: 127, signal: '', failure: `cannot run ${file}: not found` };
  const reasons: Record<string, string> = { EACCES: 'permission denied', E2BIG: 'argument list too long' };
  return { code: 126, signal: '', failure: `cannot run ${file}: ${reasons[code ?? ''] ?? code ?? message}` };
}
