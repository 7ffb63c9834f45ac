import type { Lease } from '../../job/job.js';
import { progressLine } from '../../job/timed-lines.js';
import type { ProgressUpdate } from '../store.js';
import { splitToken } from './records/tokens.js';
import type { View } from './view.js';

/** The last note of an attempt that is not written yet. */
interface LastNote {
  answer: Promise<boolean>;
  /** Resolves when the note is written, or is known to have failed. */
  done: Promise<unknown>;
  /** The note, as long as it waits for the one before it: more lines of the log can join it. */
  waiting: ProgressUpdate | undefined;
}

/**
 * Notes of one attempt are written in the order in which they were given, although calls travel over several connections: one at a time, and lines of the log
 * that wait meanwhile as one.
 */
export class NoteWriter {
  /** By token. */
  readonly #last = new Map<string, LastNote>();

  constructor(private readonly view: View) {}

  write(queue: string, lease: Lease, note: ProgressUpdate): Promise<boolean> {
    const before = this.#last.get(lease.token);
    if (before?.waiting && before.waiting.progress === undefined && note.progress === undefined) {
      before.waiting.log = `${before.waiting.log ?? ''}${note.log ?? ''}`;
      return before.answer;
    }
    const own = { ...note };
    const send = () => {
      last.waiting = undefined;
      return this.#record(queue, lease, own);
    };
    const answer = before ? before.done.then(send) : this.#record(queue, lease, own);
    const done = answer.catch(() => {}).then(() => this.#forget(lease.token, last));
    const last: LastNote = { answer, done, waiting: before && own };
    this.#last.set(lease.token, last);
    return answer;
  }

  /** Resolves when all notes of these attempts are written: a settlement must not overtake them. */
  async written(leases: readonly Lease[]): Promise<void> {
    for (const { token } of leases) await this.#last.get(token)?.done;
  }

  get idle(): boolean {
    return this.#last.size === 0;
  }

  async #record(queue: string, lease: Lease, { progress, log }: ProgressUpdate): Promise<boolean> {
    const { n, own, attempt } = splitToken(lease.token);
    const step = progress === undefined ? null : progressLine(progress);
    const args = [queue, n, own, attempt, lease.id ?? null, progress ?? null, step, log ?? null];
    return (await this.view.client.value('record_progress', [this.view.time(), ...args])) === true;
  }

  #forget(token: string, note: LastNote): void {
    if (this.#last.get(token) === note) this.#last.delete(token);
  }
}
