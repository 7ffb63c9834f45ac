import { guardProcessGroups } from '../../process/group-guard.js';
import type { OrphanGuard } from '../../process/orphan-guard.js';
import { randomToken } from '../../process/random.js';
import { uptime } from '../run/clock.js';
import type { Executor, NodeOutcome, NodeTask } from './executor.js';
import type { Renewal } from './renewal.js';
import { Shell, type ShellEnd } from './shell.js';
import { NEEDS_LIMIT, scriptOf } from './shell-script.js';

export interface ShellExecutorOptions {
  flow: string;
  env: Readonly<Record<string, string>>;
  cwd: string;
  renewal: Renewal;
}

/** A command waits behind another one for at most this long, in milliseconds; then it is given back. */
const LATE = 30;

/** Runs commands in long-lived shells, one for each command that runs at the same time. */
export class ShellExecutor implements Executor {
  readonly #idle: Shell[] = [];
  /** The shells that have work, with their slots. */
  readonly #busy = new Map<Shell, number>();
  readonly #guard: OrphanGuard;
  readonly #mark = randomToken().toString('base64url');
  readonly #env: NodeJS.ProcessEnv;
  /** Whether the shell imports functions from its environment, which can then be called like any program. */
  readonly #functions: boolean;
  readonly #slots: boolean[] = [];
  #watch: NodeJS.Timeout | undefined;

  constructor(private readonly options: ShellExecutorOptions) {
    const { guard, env } = guardProcessGroups();
    this.#guard = guard;
    this.#env = { ...env, ...options.env, CRORE_RUN: env.CRORE_RUN, CRORE_FLOW: options.flow };
    this.#functions = Object.keys(this.#env).some((name) => name.startsWith('BASH_FUNC_'));
  }

  /** Whether a task can be handed over behind one that runs. */
  get takesAhead(): boolean {
    return this.#ahead() !== undefined;
  }

  run(task: NodeTask): Promise<NodeOutcome> {
    return new Promise((resolve) => this.#run(task, resolve));
  }

  async close(): Promise<void> {
    clearTimeout(this.#watch);
    for (const shell of [...this.#idle, ...this.#busy.keys()]) shell.close();
    this.#idle.length = 0;
    this.#guard.close();
  }

  #run(task: NodeTask, over: (outcome: NodeOutcome) => void): void {
    const script = scriptOf(task, this.#functions);
    if (script === undefined) {
      const error = `upstream results are over ${NEEDS_LIMIT} bytes: pass a file name instead`;
      over({ exit: 126, fatal: true, error });
      return;
    }
    const shell = (task.ahead ? this.#ahead() : undefined) ?? this.#take();
    const slot = this.#busy.get(shell) ?? this.#slot();
    this.#busy.set(shell, slot);
    const begins = task.begins;
    const ended = (end?: ShellEnd) => over(end ? outcome(end, slot) : { exit: 0, returned: true });
    const { stop, giveBack } = shell.run({ script, begins, ended });
    task.stop = stop;
    task.giveBack = giveBack;
    if (task.ahead) this.#watch ??= setTimeout(() => this.#giveBackLate(), LATE);
  }

  #ahead(): Shell | undefined {
    for (const shell of this.#busy.keys()) if (shell.takesAhead && !this.#isWorn(shell)) return shell;
    return undefined;
  }

  /** A command that takes long must not delay the one behind it: another shell may be idle. */
  #giveBackLate(): void {
    const waits = [...this.#busy.keys()].filter((shell) => shell.waited > 0);
    for (const shell of waits) if (shell.waited > LATE) shell.giveBack();
    this.#watch = waits.length > 0 ? setTimeout(() => this.#giveBackLate(), LATE) : undefined;
  }

  #take(): Shell {
    for (let shell = this.#idle.pop(); shell; shell = this.#idle.pop()) if (!shell.dead) return shell;
    const idle = (shell: Shell) => this.#putBack(shell);
    return new Shell({ guard: this.#guard, mark: this.#mark, env: this.#env, cwd: this.options.cwd, idle });
  }

  #slot(): number {
    const free = this.#slots.indexOf(false);
    const slot = free < 0 ? this.#slots.length : free;
    this.#slots[slot] = true;
    return slot;
  }

  #putBack(shell: Shell): void {
    const slot = this.#busy.get(shell);
    if (slot === undefined) return;
    this.#busy.delete(shell);
    this.#slots[slot] = false;
    if (shell.dead) return;
    if (shell.stopped || this.#isWorn(shell)) shell.close();
    else this.#idle.push(shell);
  }

  #isWorn({ count, born }: Shell): boolean {
    const { tasks, seconds } = this.options.renewal;
    return count >= tasks || uptime() - born > seconds * 1_000;
  }
}

function outcome({ exit, stdout, stderr }: ShellEnd, slot: number): NodeOutcome {
  const result: NodeOutcome = { exit, slot };
  if (!stdout.empty) result.stdout = stdout.text;
  if (!stderr.empty) result.stderr = stderr.text;
  if (exit === 0) result.value = stdout.value;
  else result.error = lastLine(result.stderr) ?? `exit ${exit}`;
  return result;
}

function lastLine(text: string | undefined): string | undefined {
  return text?.trimEnd().split('\n').at(-1)?.slice(0, 500) || undefined;
}
