import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach } from 'vitest';
import type { NodeEnd } from '../../dist/flow/graph/node-spec.js';
import { isAlive, until } from '../support/wait.js';

/** The end of a successful node, with these overrides. */
export const end = (id: string, rest: Partial<NodeEnd> = {}): NodeEnd => ({
  id,
  state: 'done',
  attempts: 1,
  start: 5,
  seconds: 0.25,
  exit: 0,
  ...rest,
});

export const bin = fileURLToPath(new URL('../../bin/crore', import.meta.url));

/** A temporary directory with its files, removed after each test. */
export class Place {
  readonly dir = mkdtempSync(join(tmpdir(), 'crore-flow-'));

  write(name: string, content: unknown): string {
    const path = join(this.dir, name);
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  }

  read(name: string): string {
    const path = join(this.dir, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  lines(name: string): string[] {
    return this.read(name).split('\n').slice(0, -1);
  }

  get names(): string[] {
    return readdirSync(this.dir).sort();
  }

  crore(...args: string[]): { status: number | null; stdout: string; stderr: string } {
    const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], {
      cwd: this.dir,
      encoding: 'utf8',
      timeout: 50_000,
      env: environment(),
    });
    return { status, stdout, stderr };
  }

  /** Starts the command without waiting for it. */
  start(...args: string[]): Running {
    const running = new Running(args, this.dir);
    started.push(running);
    return running;
  }
}

/** The per-user state of commands. */
const state = mkdtempSync(join(tmpdir(), 'crore-state-'));
afterAll(() => rmSync(state, { recursive: true, force: true }));

function environment(): NodeJS.ProcessEnv {
  const { CRORE_STORE: _, ...env } = process.env;
  return { ...env, XDG_STATE_HOME: state };
}

export class Running {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';

  constructor(args: string[], cwd: string) {
    // In its own session, like on a second machine.
    this.child = spawn(process.execPath, [bin, ...args], {
      cwd,
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      env: environment(),
    });
    this.child.stdout!.on('data', (chunk) => {
      this.stdout += chunk;
    });
    this.child.stderr!.on('data', (chunk) => {
      this.stderr += chunk;
    });
  }

  get over(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  async exit(): Promise<number | null> {
    if (!this.over) await once(this.child, 'exit');
    return this.child.exitCode;
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    if (this.over) return;
    const gone = once(this.child, 'exit');
    this.child.kill(signal);
    await gone;
  }
}

const started: Running[] = [];
const places: Place[] = [];

export function place(): Place {
  const made = new Place();
  places.push(made);
  return made;
}

afterEach(async () => {
  for (const running of started.splice(0)) await running.kill('SIGKILL');
  for (const { dir } of places.splice(0)) rmSync(dir, { recursive: true, force: true });
});

/** Waits until these processes have ended. */
export async function gone(pids: readonly number[]): Promise<void> {
  const alive = () => pids.filter((pid) => isAlive(pid, (file) => readFileSync(file, 'utf8')));
  await until(`processes ${pids.join()} to end`, () => alive().length === 0);
}

/** A graph of commands that append their id to the file `log`. */
export function logging(edges: Record<string, string[]>): { nodes: Record<string, { run: string; needs: string[] }> } {
  const nodes = Object.entries(edges).map(([id, needs]) => [id, { run: `echo ${id} >> log`, needs }]);
  return { nodes: Object.fromEntries(nodes) };
}
