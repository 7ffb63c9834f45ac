import type { ProgressUpdate } from '../../store/store.js';
import { unpackError } from '../sent-error.js';
import type { HandlerNote, NoteAnswer } from './handler-messages.js';

interface Waiting {
  resolve: (held: boolean) => void;
  reject: (error: unknown) => void;
}

/** Sends progress and log lines to the worker: those of one turn as one message, which becomes one write. */
export class NoteSender {
  #next: ProgressUpdate | undefined;
  #send: (note: HandlerNote) => void = () => {};
  #waiting: Waiting[] = [];
  #number = 0;
  readonly #sent = new Map<number, Waiting[]>();

  /** `send` belongs to the job. Resolves with whether the lease was still held. */
  write({ progress, log }: ProgressUpdate, send: (note: HandlerNote) => void): Promise<boolean> {
    if (!this.#next) queueMicrotask(() => this.flush());
    this.#next ??= {};
    this.#send = send;
    if (progress !== undefined) this.#next.progress = progress;
    if (log !== undefined) this.#next.log = (this.#next.log ?? '') + log;
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  flush(): void {
    if (!this.#next) return;
    const note = ++this.#number;
    this.#sent.set(note, this.#waiting);
    this.#send({ note, update: this.#next });
    this.#waiting = [];
    this.#next = undefined;
  }

  written(answer: NoteAnswer): void {
    const waiting = this.#sent.get(answer.written) ?? [];
    this.#sent.delete(answer.written);
    for (const { resolve, reject } of waiting) {
      if ('failed' in answer) reject(unpackError(answer.failed));
      else resolve(answer.held);
    }
  }
}
