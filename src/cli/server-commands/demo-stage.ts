import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onOutputClosed } from '../streams.js';

/** What must not outlive the demo, however it ends: its directory and its worker processes. */

const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGQUIT: 131, SIGTERM: 143 } as const;

/** Where the demo takes place. Everything is gone when the process is, unless it ends by SIGKILL. */
export class DemoStage {
  readonly #dir: string;
  readonly #workers = new Set<ChildProcess>();
  /** Resolves when the demo is asked to end: by a signal, or because nobody watches it any longer. */
  readonly ended: Promise<void>;

  constructor() {
    let asked = false;
    // First the handlers, then the directory: no signal may come in between.
    this.ended = new Promise((resolve) => {
      onOutputClosed(resolve);
      for (const [signal, code] of Object.entries(SIGNALS)) {
        process.on(signal, () => {
          if (asked) process.exit(code); // a user who asks twice does not want to wait
          asked = true;
          resolve();
        });
      }
    });
    this.#dir = mkdtempSync(join(tmpdir(), 'crore-demo-'));
    process.once('exit', () => this.#remove());
  }

  get url(): string {
    return `sqlite:${join(this.#dir, 'demo.db')}`;
  }

  startWorker(): ChildProcess {
    const bin = fileURLToPath(new URL('../../../bin/crore', import.meta.url));
    const child = fork(bin, ['demo', '--worker', this.url], { stdio: ['ignore', 2, 2, 'ipc'] });
    this.#workers.add(child);
    const forget = () => this.#workers.delete(child);
    child.on('exit', forget).on('error', forget);
    return child;
  }

  /** Kills the workers; resolves when they are gone and no longer write to the directory. */
  async killWorkers(): Promise<void> {
    const gone = [...this.#workers].map((child) => new Promise((resolve) => child.once('exit', resolve)));
    this.#kill();
    await Promise.all(gone);
  }

  #kill(): void {
    for (const child of this.#workers) child.kill('SIGKILL');
  }

  #remove(): void {
    this.#kill();
    // A worker may still write for a moment.
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}
