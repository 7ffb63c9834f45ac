import { type ChildProcess, fork, type SerializationType } from 'node:child_process';
import type { Readable } from 'node:stream';
import { whenDrained } from './drained.js';
import type { guardProcessGroups } from './group-guard.js';
import { WholeLines } from './whole-lines.js';

export interface ForkedProgramSetup {
  /** The file of the program. */
  program: string;
  args: string[];
  guarded: ReturnType<typeof guardProcessGroups>;
  serialization: SerializationType;
  /** Options of Node; default: those of this process. */
  execArgv?: string[];
  /** `pipe`: what it prints goes to our stderr, because our stdout carries something else. */
  stdout: 'pipe' | 'inherit';
  message: (message: unknown) => void;
  /** Called with what it prints to a pipe: its stderr, and its stdout if that is one. */
  printed: (chunk: Buffer) => void;
  /** Called once, with how it exited. */
  ended: (how: string) => void;
}

/**
 * A Node program with an IPC channel, for work that is sent to it. It leads a process group that is killed as a whole, because a
 * function may have started processes, and that also ends when this process is killed.
 */
export class ForkedProgram {
  /** Resolves when it has exited and everything it printed has been passed on. */
  readonly gone: Promise<void>;
  readonly #child: ChildProcess;

  constructor(setup: ForkedProgramSetup) {
    const { guard } = setup.guarded;
    guard.ready();
    const child = start(setup);
    this.#child = child;
    if (child.pid) guard.watch(child.pid);
    // We read its pipes ourselves: we must know when something is printed, and the end of it belongs to a failure.
    const closers = [child.stdout, child.stderr].map((stream) => stream && passOn(stream, setup.printed));
    child.on('message', setup.message);
    this.gone = new Promise((resolve) => {
      const over = (how: string) => {
        this.kill(); // kills everything it left behind
        if (child.pid) guard.forget(child.pid);
        setup.ended(how);
        whenDrained(() => {
          for (const close of closers) close?.();
          resolve();
        });
      };
      child.on('error', (error) => {
        if (child.pid === undefined) over(error.message);
      });
      child.once('exit', (code, signal) => over(signal ? `killed by ${signal}` : `exit ${code}`));
    });
  }

  /** Throws when the message cannot be serialized. A program that has just exited is not an error here. */
  send(message: object): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /** Closes the channel: a program that is idle exits. */
  disconnect(): void {
    if (this.#child.connected) this.#child.disconnect();
  }

  kill(): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // already gone
    }
  }
}

function start({ program, args, guarded, serialization, execArgv, stdout }: ForkedProgramSetup): ChildProcess {
  return fork(program, args, {
    stdio: ['ignore', stdout, 'pipe', 'ipc'],
    serialization,
    ...(execArgv ? { execArgv } : {}),
    env: guarded.env,
    detached: true,
  });
}

/** Prints what arrives; returns a function that ends this, even if a process left behind keeps the stream open. */
export function passOn(stream: Readable, printed: (chunk: Buffer) => void): () => void {
  const lines = new WholeLines((text) => void process.stderr.write(text));
  stream.on('data', (chunk: Buffer) => {
    printed(chunk);
    lines.add(chunk);
  });
  return () => {
    stream.destroy();
    lines.end();
  };
}
