import type { NodeOutcome, NodeTask } from '../executors/executor.js';
import type { NodeEnd } from '../graph/node-spec.js';
import type { Journal } from '../journal/journal.js';
import { now } from './clock.js';

interface Told {
  /** These nodes have ended for good: their dependents may go. */
  released: (nodes: readonly number[]) => void;
  /** A write that took its time is done. */
  written: () => void;
  failed: (error: Error) => void;
}

/** Ends on their way into the journal: many share one write, and nobody hears of an end before it is written. */
export class CompletionLog {
  #ends: NodeEnd[] = [];
  #nodes: number[] = [];
  #writing = false;

  constructor(
    private readonly journal: Journal,
    private readonly told: Told,
  ) {}

  get count(): number {
    return this.#nodes.length;
  }

  get writing(): boolean {
    return this.#writing;
  }

  /** `node` is -1 for a part of one. What came from the cache will come from there again: it is not written. */
  add(end: NodeEnd, node: number): void {
    if (!end.cached) this.#ends.push(end);
    this.#nodes.push(node);
  }

  /** Writes what there is; true when that is done already. */
  flush(): boolean {
    if (this.#nodes.length === 0 || this.#writing) return false;
    const [ends, nodes] = [this.#ends, this.#nodes];
    this.#ends = [];
    this.#nodes = [];
    try {
      const written = ends.length > 0 ? this.journal.write(ends) : undefined;
      if (written) {
        this.#wait(written, nodes);
        return false;
      }
    } catch (error) {
      this.told.failed(error as Error);
      return false;
    }
    this.told.released(nodes);
    return true;
  }

  #wait(written: Promise<void>, nodes: readonly number[]): void {
    this.#writing = true;
    written.then(
      () => {
        this.#writing = false;
        this.told.released(nodes);
        this.told.written();
      },
      (error: Error) => {
        this.#writing = false;
        this.told.failed(error);
      },
    );
  }
}

export function secondsOf(task: NodeTask, outcome: NodeOutcome): number {
  return outcome.seconds ?? Math.max(0, now() - task.startedAt) / 1_000;
}

export function endOf(task: NodeTask, outcome: NodeOutcome, state: 'done' | 'failed', cached: boolean): NodeEnd {
  const { error, exit, value, worker, slot } = outcome;
  const { id, attempt: attempts, startedAt: start } = task;
  const end: NodeEnd = { id, state, attempts, start, seconds: secondsOf(task, outcome), exit };
  if (value !== undefined) end.value = value;
  if (error !== undefined) end.error = error;
  if (worker !== undefined) end.worker = worker;
  if (slot !== undefined) end.slot = slot;
  if (cached) end.cached = true;
  return end;
}
