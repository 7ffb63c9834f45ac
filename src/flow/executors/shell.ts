import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { CapturedOutput } from '../../process/captured-output.js';
import { whenDrained } from '../../process/drained.js';
import type { OrphanGuard } from '../../process/orphan-guard.js';
import { groupLives } from '../../process/process-group.js';
import { uptime } from '../run/clock.js';

export interface ShellEnd {
  exit: number;
  stdout: CapturedOutput;
  stderr: CapturedOutput;
}

/** How long a command may take to exit after SIGTERM before it is killed, in milliseconds. */
const GRACE = 3_000;
/** How long the kernel may take to end killed processes. */
const AFTER_KILL = 1_000;

/**
 * A long-lived `sh` that runs one command after another, isolated from their effects: starting a process from Node
 * blocks the event loop for more than a millisecond, writing a line to a pipe for some microseconds. The shell leads a
 * process group. To stop a command, the caller kills the group; the next command gets a new shell.
 */
export class Shell {
  readonly #child: ChildProcess;
  #current: { stdout: CapturedOutput; stderr: CapturedOutput; ended: (end: ShellEnd) => void } | undefined;
  #killer: NodeJS.Timeout | undefined;
  /** The time after which it no longer waits for the processes of the group. */
  #until = Number.POSITIVE_INFINITY;
  #dead = false;
  /** Number of commands it has run. */
  count = 0;
  readonly born = uptime();

  /** The mark is a random word that no command knows. */
  constructor(
    private readonly guard: OrphanGuard,
    private readonly mark: string,
    env: NodeJS.ProcessEnv,
    cwd: string,
  ) {
    guard.ready();
    const child = spawn('sh', ['-s'], { detached: true, stdio: ['pipe', 'pipe', 'pipe'], env, cwd });
    this.#child = child;
    if (child.pid) guard.watch(child.pid);
    child.stdin!.on('error', () => {});
    child.stdout!.on('data', (chunk: Buffer) => this.#heard(chunk));
    child.stderr!.on('data', (chunk: Buffer) => this.#current?.stderr.add(chunk));
    child.once('error', (error) => this.#gone(127, `cannot run sh: ${error.message}`));
    child.once('exit', (code, signal) => this.#exited(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** It is being stopped and takes no more commands. */
  get stopped(): boolean {
    return this.#killer !== undefined;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Runs one command, a complete shell script that ends with a newline; only one at a time. */
  run(script: string, ended: (end: ShellEnd) => void): void {
    this.count++;
    this.#current = { stdout: new CapturedOutput(`\0${this.mark} `), stderr: new CapturedOutput(), ended };
    this.#child.stdin!.write(`${script}printf '\\0%s %s\\n' ${this.mark} $?\n`);
  }

  /** Stops the command and everything it started: SIGTERM first, SIGKILL after the grace period. */
  stop(): void {
    this.#signal('SIGTERM');
    if (this.#killer) return;
    this.#until = uptime() + GRACE + AFTER_KILL;
    this.#killer = setTimeout(() => this.#signal('SIGKILL'), GRACE);
  }

  /** Kills an idle shell and everything its commands left in its group, and does not wait for those processes. */
  close(): void {
    this.#signal('SIGKILL');
    this.#child.unref();
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      (stream as unknown as { unref?: () => void }).unref?.();
    }
  }

  /**
   * The mark is printed to stdout only: a second one on stderr would cause another wakeup. Everything on stderr was
   * written before the mark.
   */
  #heard(chunk: Buffer): void {
    const current = this.#current;
    if (!current || current.stdout.exit !== undefined) return; // output of a process that an earlier command left running
    current.stdout.add(chunk);
    if (current.stdout.exit !== undefined) whenDrained(() => this.#ended());
  }

  #ended(): void {
    const current = this.#current!;
    this.#current = undefined;
    current.ended({ exit: current.stdout.exit!, stdout: current.stdout, stderr: current.stderr });
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.#child.pid!, signal);
    } catch {
      // No process is left in the group.
    }
  }

  /**
   * The shell itself has exited: it was stopped, or its own command killed it. Other processes of its group may need
   * the grace period.
   */
  #exited(exit: number): void {
    this.#dead = true;
    const wait = this.#killer !== undefined && uptime() < this.#until;
    if (wait && groupLives(this.#child.pid!)) setTimeout(() => this.#exited(exit), 20);
    else this.#gone(exit, 'its shell was killed');
  }

  #gone(exit: number, why: string): void {
    this.#dead = true;
    clearTimeout(this.#killer);
    this.#signal('SIGKILL');
    if (this.#child.pid) this.guard.forget(this.#child.pid);
    const current = this.#current;
    if (!current || current.stdout.exit !== undefined) return; // it was idle, or its last command has finished
    this.#current = undefined;
    if (this.#killer === undefined) current.stderr.note(why);
    current.ended({ exit: exit === 0 ? 1 : exit, stdout: current.stdout, stderr: current.stderr });
  }
}
