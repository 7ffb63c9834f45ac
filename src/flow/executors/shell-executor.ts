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

/** Runs commands in long-lived shells, one for each command that runs at the same time. */
export class ShellExecutor implements Executor {
  readonly #idle: Shell[] = [];
  readonly #busy = new Set<Shell>();
  readonly #guard: OrphanGuard;
  readonly #mark = randomToken().toString('base64url');
  readonly #env: NodeJS.ProcessEnv;
  /** Whether the shell imports functions from its environment, which can then be called like any program. */
  readonly #functions: boolean;
  readonly #slots: boolean[] = [];

  constructor(private readonly options: ShellExecutorOptions) {
    const { guard, env } = guardProcessGroups();
    this.#guard = guard;
    this.#env = { ...env, ...options.env, CRORE_RUN: env.CRORE_RUN, CRORE_FLOW: options.flow };
    this.#functions = Object.keys(this.#env).some((name) => name.startsWith('BASH_FUNC_'));
  }

  run(task: NodeTask): Promise<NodeOutcome> {
    return new Promise((resolve) => this.#run(task, resolve));
  }

  async close(): Promise<void> {
    for (const shell of [...this.#idle, ...this.#busy]) shell.close();
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
    const shell = this.#take();
    const slot = this.#slot();
    this.#busy.add(shell);
    task.stop = () => shell.stop();
    shell.run(script, (end) => {
      this.#busy.delete(shell);
      this.#slots[slot] = false;
      this.#putBack(shell);
      over(outcome(end, slot));
    });
  }

  #take(): Shell {
    for (let shell = this.#idle.pop(); shell; shell = this.#idle.pop()) if (!shell.dead) return shell;
    return new Shell(this.#guard, this.#mark, this.#env, this.options.cwd);
  }

  #slot(): number {
    const free = this.#slots.indexOf(false);
    const slot = free < 0 ? this.#slots.length : free;
    this.#slots[slot] = true;
    return slot;
  }

  #putBack(shell: Shell): void {
    if (shell.dead) return;
    const { tasks, seconds } = this.options.renewal;
    if (shell.stopped || shell.count >= tasks || uptime() - shell.born > seconds * 1_000) shell.close();
    else this.#idle.push(shell);
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
