import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isAlive, until } from '../../support/wait.js';

export const BIN = fileURLToPath(new URL('../../../bin/w8y', import.meta.url));

export interface Result {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: Buffer;
  out: string;
  err: string;
}

export interface StartOptions {
  env?: Record<string, string>;
  input?: string | Buffer;
  /** Standard input stays open for `write`. */
  open?: boolean;
  cwd?: string;
  /** The command to run instead of bin/w8y. */
  command?: string[];
}

// Processes left over by a failed test end with its file: the wrapper by this, its children by the guard.
const living = new Set<ChildProcess>();
process.once('exit', () => {
  for (const each of living) each.kill('SIGKILL');
});

/** A running w8y with everything it has written so far. */
export class Running {
  private readonly chunks: Buffer[] = [];
  private readonly errors: Buffer[] = [];
  readonly ended: Promise<Result>;

  constructor(private readonly process: ChildProcess) {
    process.stdout?.on('data', (chunk: Buffer) => this.chunks.push(chunk));
    process.stderr?.on('data', (chunk: Buffer) => this.errors.push(chunk));
    living.add(process);
    process.once('exit', () => living.delete(process));
    this.ended = new Promise((resolve, reject) => {
      process.once('error', reject);
      process.once('close', (code, signal) => resolve({ code, signal, ...this.written }));
    });
  }

  get written(): { stdout: Buffer; out: string; err: string } {
    const stdout = Buffer.concat(this.chunks);
    return { stdout, out: stdout.toString(), err: Buffer.concat(this.errors).toString() };
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  signal(name: NodeJS.Signals): void {
    this.process.kill(name);
  }

  write(text: string): void {
    this.process.stdin?.write(text);
  }

  endInput(): void {
    this.process.stdin?.end();
  }

  /** Closes the reading end of its output. */
  closeOutput(): void {
    this.process.stdout?.destroy();
  }

  /** Waits until stdout contains the text, and returns all of stdout. */
  async says(text: string, within?: number): Promise<string> {
    await until(`stdout to contain ${JSON.stringify(text)}`, () => this.written.out.includes(text), { within });
    return this.written.out;
  }

  async complains(text: string, within?: number): Promise<string> {
    await until(`stderr to contain ${JSON.stringify(text)}`, () => this.written.err.includes(text), { within });
    return this.written.err;
  }
}

export function start(args: string[], { env = {}, input, open, cwd, command = [BIN] }: StartOptions = {}): Running {
  const { REDIS_URL: _, ...inherited } = process.env;
  const [file, ...first] = command;
  const child = spawn(file!, [...first, ...args], { env: { ...inherited, ...env }, cwd, stdio: 'pipe' });
  child.stdin.on('error', () => {});
  if (!open) child.stdin.end(input ?? '');
  return new Running(child);
}

export function run(args: string[], options?: StartOptions): Promise<Result> {
  return start(args, options).ended;
}

export function alive(pid: number): boolean {
  return isAlive(pid, (file) => readFileSync(file, 'utf8'));
}

/** A temporary folder for one test. */
export async function inFolder(body: (dir: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'ring-test-'));
  try {
    await body(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
