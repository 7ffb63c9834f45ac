import type { Guard } from '../ring/guard.js';
import { guarded } from './guarded.js';
import { uptime } from './now.js';
import { quote } from './quote.js';
import type { Renewal } from './renewal.js';
import { Shell, type ShellEnd } from './shell.js';
import type { Executor, Outcome, Task } from './task.js';

export interface ShellsOptions {
  flow: string;
  env: Readonly<Record<string, string>>;
  cwd: string;
  renewal: Renewal;
}

/** Upstream results that a command can be given in its environment; more belongs in a file. */
const NEEDS_LIMIT = 98_304;

/** Runs commands in as many long-lived shells as run at once. */
export class Shells implements Executor {
  readonly #idle: Shell[] = [];
  readonly #busy = new Set<Shell>();
  readonly #guard: Guard;
  readonly #env: NodeJS.ProcessEnv;
  readonly #slots: boolean[] = [];

  constructor(private readonly options: ShellsOptions) {
    const { guard, env } = guarded();
    this.#guard = guard;
    this.#env = { ...env, ...options.env, CRORE_RUN: env.CRORE_RUN, CRORE_FLOW: options.flow };
  }

  run(task: Task): Promise<Outcome> {
    return new Promise((resolve) => this.#run(task, resolve));
  }

  async close(): Promise<void> {
    for (const shell of [...this.#idle, ...this.#busy]) shell.close();
    this.#idle.length = 0;
    this.#guard.close();
  }

  #run(task: Task, over: (outcome: Outcome) => void): void {
    const script = this.#script(task);
    if (script === undefined) {
      const error = `upstream results are over ${NEEDS_LIMIT} bytes: hand on the name of a file instead`;
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
    return new Shell(this.#guard, this.#env, this.options.cwd);
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

  /** The piece of shell that is this task; undefined when its environment would be too large. */
  #script({ id, spec, attempt, needs, item, part }: Task): string | undefined {
    const { env, cwd } = spec.options;
    if (spec.work.kind !== 'shell') throw new Error(`node '${id}' is not a command`);
    const { run } = spec.work;
    let prefix = 'export';
    const put = (name: string, value: string): void => {
      prefix += ` ${name}=${quote(value)}`;
    };
    for (const name in env) put(name, env[name]!);
    put('CRORE_NODE', id);
    put('CRORE_ATTEMPT', String(attempt));
    if (needs) putNeeds(needs, put);
    if (part !== undefined) {
      put('CRORE_ITEM', asText(item));
      put('CRORE_INDEX', String(part));
    }
    if (prefix.length > NEEDS_LIMIT) return undefined;
    const place = cwd === undefined ? '' : `cd -- ${quote(cwd)} || exit 126\n`;
    const command = typeof run === 'string' ? `eval ${quoteAlways(run)}` : `exec ${run.map(quote).join(' ')}`;
    return `${place}${prefix}\n${command}`;
  }
}

/** Upstream results: all of them as JSON in one variable, and each in one of its own where its id can name one. */
function putNeeds(needs: Record<string, unknown>, put: (name: string, value: string) => void): void {
  put('CRORE_NEEDS', JSON.stringify(needs));
  for (const [id, value] of Object.entries(needs)) {
    if (/^\w+$/.test(id)) put(`CRORE_RESULT_${id}`, asText(value));
  }
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

function quoteAlways(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function outcome({ exit, stdout, stderr }: ShellEnd, slot: number): Outcome {
  const result: Outcome = { exit, slot };
  if (!stdout.empty) result.stdout = stdout.text;
  if (!stderr.empty) result.stderr = stderr.text;
  if (exit === 0) result.value = stdout.value;
  else result.error = lastLine(result.stderr) ?? `exit ${exit}`;
  return result;
}

function lastLine(text: string | undefined): string | undefined {
  return text?.trimEnd().split('\n').at(-1)?.slice(0, 500) || undefined;
}
