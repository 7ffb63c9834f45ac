import type { ProgressUpdate } from '../store/store.js';
import type { HostCommand, HostReply } from './messages.js';
import { unpackError } from './sent-error.js';

interface Waiting {
  resolve: (held: boolean) => void;
  reject: (error: unknown) => void;
}

/** Sends progress and log lines to the worker: those of one turn as one message, which becomes one write. */
export class NoteSender {
  #next: ProgressUpdate | undefined;
  #waiting: Waiting[] = [];
  #number = 0;
  readonly #sent = new Map<number, Waiting[]>();

  constructor(private readonly send: (reply: HostReply) => void) {}

  /** Resolves with whether the lease was still held. */
  write({ progress, log }: ProgressUpdate): Promise<boolean> {
    if (!this.#next) queueMicrotask(() => this.flush());
    this.#next ??= {};
    if (progress !== undefined) this.#next.progress = progress;
    if (log !== undefined) this.#next.log = (this.#next.log ?? '') + log;
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  flush(): void {
    if (!this.#next) return;
    const note = ++this.#number;
    this.#sent.set(note, this.#waiting);
    this.send({ note, update: this.#next });
    this.#waiting = [];
    this.#next = undefined;
  }

  written(answer: Extract<HostCommand, { written: number }>): void {
    const waiting = this.#sent.get(answer.written) ?? [];
    this.#sent.delete(answer.written);
    for (const { resolve, reject } of waiting) {
      if ('failed' in answer) reject(unpackError(answer.failed));
      else resolve(answer.held);
    }
  }
}
