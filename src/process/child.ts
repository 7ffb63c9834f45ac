import type { ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import type { ChildCommand } from './child-command.js';
import { now } from './clock.js';
import type { OrphanGuard } from './orphan-guard.js';

/** How a child ended, or why it never began. `code` is what the wrapper would exit with. */
export interface ChildExit {
  readonly code: number;
  readonly signal: string;
  /** Set when nothing was started. */
  readonly failure: string;
}

/** A child leading a process group of its own, so that its whole tree can be signalled and nobody else's. */
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
      // What is ended by us ends whole: its work is about to be somebody else's, and nothing it left behind may go on with it.
      if (this.killer) this.signalGroup('SIGKILL');
      if (this.pid) guard.forget(this.pid);
      return result;
    });
  }

  get pid(): number | undefined {
    return this.process?.pid;
  }

  /** What the child writes, where its plan asks for a pipe. */
  get stdout(): Readable | null {
    return this.process?.stdout ?? null;
  }

  /** Signals the child alone. */
  signal(name: NodeJS.Signals): void {
    if (!this.over) this.kill(this.pid ?? 0, name);
  }

  /** Signals the child and everything it started that stayed in its group, also when the child itself is gone. */
  signalGroup(name: NodeJS.Signals): void {
    this.kill(-(this.pid ?? 0), name);
  }

  /** Asks the whole group to end, and kills what is left of it after the grace; a second call can only bring that forward. */
  end(graceMs: number): void {
    if (this.over) return;
    const killAt = now() + graceMs;
    if (killAt < this.killAt) {
      clearTimeout(this.killer);
      this.killer = setTimeout(() => this.signalGroup('SIGKILL'), graceMs);
      this.killAt = killAt;
    }
    this.signalGroup('SIGTERM');
    // A stopped process hears SIGTERM only when it goes on.
    this.signalGroup('SIGCONT');
  }

  private kill(target: number, name: NodeJS.Signals): void {
    if (target === 0) return;
    try {
      process.kill(target, name);
    } catch {
      // Gone already, or not ours to signal: there is nothing left to do about it.
    }
  }
}

function launch(start: typeof spawn, plan: ChildCommand): ChildProcess {
  const item = Buffer.isBuffer(plan.stdin) ? plan.stdin : undefined;
  const child = start(plan.file, [...plan.args], {
    env: plan.env,
    detached: true,
    stdio: [item ? 'pipe' : (plan.stdin as 'inherit' | 'ignore'), plan.stdout ?? 'inherit', 'inherit'],
  });
  // A child that does not read its input is no fault.
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
