import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { isAbsolute } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from './wait.js';

/** A real child process, with the lines it printed. */
export class Program {
  readonly lines: string[] = [];
  readonly child: ChildProcess;
  #errors = '';

  /** `name`: of a program beside this file, or a path. `within`: a command that runs the given one. */
  constructor(name: string, setup: unknown, within: string[] = []) {
    const file = isAbsolute(name) ? name : fileURLToPath(new URL(`./programs/${name}.mjs`, import.meta.url));
    const [command, ...args] = [...within, process.execPath, file, JSON.stringify(setup)];
    this.child = spawn(command!, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    createInterface({ input: this.child.stdout! }).on('line', (line) => this.lines.push(line));
    this.child.stderr!.on('data', (chunk) => {
      this.#errors += chunk;
    });
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Waits for a line with this prefix. */
  async line(start: string): Promise<string> {
    const found = () => {
      const line = this.lines.find((one) => one.startsWith(start));
      if (line === undefined && !this.running && this.child.stdout!.readableEnded) {
        throw new Error(`it ended without a line '${start}': ${this.#errors}`);
      }
      return line;
    };
    return (await until(`a line '${start}'`, found))!;
  }

  /** Writes a line to its standard input. */
  tell(line: string): void {
    this.child.stdin!.write(`${line}\n`);
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Ends it with this signal and waits for its exit. */
  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (!this.running) return;
    const gone = once(this.child, 'exit');
    this.child.kill(signal);
    await gone;
  }

  /** Waits until it exits by itself and returns its exit code. */
  async exit(): Promise<number | null> {
    if (this.running) await once(this.child, 'exit');
    if (this.child.exitCode !== 0 && this.child.signalCode === null) throw new Error(this.#errors);
    return this.child.exitCode;
  }
}

/** A command that runs another one with a shifted clock. */
export function withSkew(ms: number): string[] {
  const file = fileURLToPath(new URL('./programs/skew.mjs', import.meta.url));
  return ['env', `CRORE_TEST_SKEW=${ms}`, `NODE_OPTIONS=--import=${file}`];
}

/** A command that runs another one whose threads start late. */
export function withLateThreads(ms: number): string[] {
  const file = fileURLToPath(new URL('./programs/late-threads.mjs', import.meta.url));
  return ['env', `CRORE_TEST_LATE=${ms}`, `NODE_OPTIONS=--import=${file}`];
}

/** A process that runs the text of its command line, which imports the program. */
export function asArgument(): string[] {
  const text = 'process.argv.splice(1, 1); await import("file://" + process.argv[1])';
  return [process.execPath, '--input-type=module', '-e', text, '--'];
}

/** A process with options of Node. */
export function withFlags(...flags: string[]): string[] {
  return ['sh', '-c', `node=$1; shift; exec "$node" ${flags.join(' ')} "$@"`, '-'];
}

/** A process in which no thread can start. */
export function withoutThreads(): string[] {
  const file = fileURLToPath(new URL('./programs/no-threads.mjs', import.meta.url));
  return ['env', `NODE_OPTIONS=--import=${file}`];
}

/** Starts a worker process and waits until it is ready. */
export async function startWorker(
  setup: {
    url: string;
    queue: string;
    take?: number;
    mode?: string;
    options?: object;
  },
  within?: string[],
): Promise<Program> {
  const program = new Program('worker', setup, within);
  try {
    await program.line('ready');
  } catch (error) {
    await program.end();
    throw error;
  }
  return program;
}
