import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { until } from '../../support/wait.js';

const bin = fileURLToPath(new URL('../../../bin/crore', import.meta.url));

/** `crore serve` as a separate process. */
export class ServeProcess {
  readonly child: ChildProcess;
  out = '';
  errors = '';

  constructor(args: string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) {
    const env = { ...process.env, CRORE_STORE: undefined, ...options.env };
    this.child = spawn(process.execPath, [bin, 'serve', ...args], {
      ...options,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout!.on('data', (chunk) => {
      this.out += chunk;
    });
    this.child.stderr!.on('data', (chunk) => {
      this.errors += chunk;
    });
  }

  static async start(args: string[], options?: { cwd?: string; env?: NodeJS.ProcessEnv }): Promise<ServeProcess> {
    const server = new ServeProcess(args, options);
    await until(
      `the server to listen: ${server.errors}`,
      () => server.out.includes('Press Ctrl-C to stop') || !server.running,
    );
    if (!server.running) throw new Error(server.errors);
    return server;
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** HOST:PORT of gRPC. */
  get address(): string {
    return /gRPC +(\S+)/.exec(this.out)![1]!;
  }

  get http(): string {
    return /HTTP\/JSON +(\S+)/.exec(this.out)![1]!;
  }

  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    if (this.running) {
      const gone = once(this.child, 'exit');
      this.child.kill(signal);
      await gone;
    }
    return this.child.exitCode;
  }
}
