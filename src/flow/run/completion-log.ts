import { lastLines } from '../../process/captured-output.js';
import type { NodeOutcome, NodeTask } from '../executors/executor.js';
import type { NodeEnd } from '../graph/node-spec.js';
import type { Journal } from '../journal/journal.js';
import { now } from './clock.js';

interface CompletionListener {
  /** These nodes have finished for good, so their dependents may start. */
  released: (nodes: readonly number[]) => void;
  /** An asynchronous write has completed. */
  written: () => void;
  failed: (error: Error) => void;
}

/** Collects completions for the journal: many share one write, and dependents start only after the write. */
export class CompletionLog {
  #ends: NodeEnd[] = [];
  #nodes: number[] = [];
  #writing = false;

  constructor(
    private readonly journal: Journal,
    private readonly listener: CompletionListener,
  ) {}

  get count(): number {
    return this.#nodes.length;
  }

  get writing(): boolean {
    return this.#writing;
  }

  /** `node` is -1 for a part of a map node. Cached completions are not written: the cache provides them again. */
  add(end: NodeEnd, node: number): void {
    if (!end.cached) this.#ends.push(end);
    this.#nodes.push(node);
  }

  /** Writes all pending completions; true when the write has already completed. */
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
      this.listener.failed(error as Error);
      return false;
    }
    this.listener.released(nodes);
    return true;
  }

  #wait(written: Promise<void>, nodes: readonly number[]): void {
    this.#writing = true;
    written.then(
      () => {
        this.#writing = false;
        this.listener.released(nodes);
        this.listener.written();
      },
      (error: Error) => {
        this.#writing = false;
        this.listener.failed(error);
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
  const output = state === 'failed' ? lastLines(outcome.stderr || outcome.stdout || outcome.printed || '') : undefined;
  if (output !== undefined) end.output = output;
  if (worker !== undefined) end.worker = worker;
  if (slot !== undefined) end.slot = slot;
  if (cached) end.cached = true;
  return end;
}
