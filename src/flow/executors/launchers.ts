import { type ChildProcess, spawn } from 'node:child_process';
import { CroreError } from '../../errors.js';
import { quote } from '../../process/shell-quote.js';
import type { Watcher } from '../report/watcher.js';
import type { RemoteExecutor } from './remote-executor.js';

/** A command that starts a worker: `ssh host`, a batch system, or just the worker itself. */
export interface Launch {
  /** `{}` is replaced by the worker's command line; without it, the command line is appended. */
  template: string;
  /** The worker's command line without the flow's id. */
  worker: readonly string[];
}

interface LaunchersOptions {
  flow: string;
  remote: RemoteExecutor;
  watchers: readonly Watcher[];
}

/** The run gives up after this many consecutive failures: a launcher that keeps failing will fail again. */
const MAX_FAILURES = 3;
const GRACE = 5_000;

/** Starts workers and restarts them when they exit before the flow ends. They exit when their stdin pipe closes. */
export class Launchers {
  readonly #children = new Set<ChildProcess>();
  #failures = 0;
  #closed = false;
  #fail: (error: Error) => void = () => {};

  constructor(
    private readonly launches: readonly Launch[],
    private readonly options: LaunchersOptions,
  ) {}

  start(fail: (error: Error) => void): void {
    this.#fail = fail;
    for (const launch of this.launches) this.#launch(launch);
  }

  /** Closes the pipes, and kills the workers that have not exited after a grace period. */
  async close(): Promise<void> {
    this.#closed = true;
    const ends = [...this.#children].map((child) => {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.stdin?.end();
      const killer = setTimeout(() => kill(child, 'SIGKILL'), GRACE);
      return gone.then(() => clearTimeout(killer));
    });
    await Promise.all(ends);
  }

  #launch(launch: Launch): void {
    const worker = [...launch.worker, '--flow', this.options.flow].map(quote).join(' ');
    const line = launch.template.includes('{}')
      ? launch.template.replaceAll('{}', worker)
      : `${launch.template} ${worker}`;
    const child = spawn('sh', ['-c', line], { detached: true, stdio: ['pipe', 'ignore', 'pipe'] });
    const began = performance.now();
    let complaint = '';
    child.stdin!.on('error', () => {});
    child.stderr!.on('data', (chunk: Buffer) => {
      complaint = `${complaint}${chunk}`.slice(-2_000);
    });
    this.#children.add(child);
    let over = false;
    const ended = (how: string, clean: boolean) => {
      if (over) return;
      over = true;
      this.#children.delete(child);
      if (!this.#closed) this.#ended(launch, how, clean, complaint.trim(), performance.now() - began);
    };
    child.once('error', (error) => ended(error.message, false));
    child.once('exit', (code, signal) => ended(signal ? `killed by ${signal}` : `exit ${code}`, code === 0));
  }

  /** Replaces a worker that exited normally or crashed after it had worked; one that never joined counts as a failure. */
  #ended(launch: Launch, how: string, clean: boolean, complaint: string, lasted: number): void {
    const worked = clean || (lasted > 5_000 && this.options.remote.seen);
    this.#failures = worked ? 0 : this.#failures + 1;
    const why = `launcher '${launch.template}': the worker exited (${how})${complaint === '' ? '' : `: ${complaint.split('\n').at(-1)}`}`;
    if (!clean) for (const watcher of this.options.watchers) watcher.said?.(why);
    if (this.#failures >= MAX_FAILURES) this.#fail(new CroreError('WORKER_FAILED', why));
    else this.#launch(launch);
  }
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-child.pid!, signal);
  } catch {
    // already gone
  }
}
