import type { NodeOutcome, NodeTask } from '../executors/executor.js';
import type { NodeEnd } from '../graph/node-spec.js';
import type { Run } from '../run/run.js';

/** Somebody who is told what happens in a run: progress, events, trace, joblog. None of them decides anything. */
export interface Watcher {
  begin?(run: Run): void;
  started?(task: NodeTask): void;
  ended?(end: NodeEnd, outcome: NodeOutcome, task: NodeTask): void;
  /** An attempt failed; the next comes after so many milliseconds. */
  retried?(task: NodeTask, outcome: NodeOutcome, wait: number): void;
  /** It will not run: `skipped` because of an upstream, or `cancelled`. */
  dropped?(id: string, state: 'skipped' | 'cancelled'): void;
  /** The runner itself has something to say. */
  said?(text: string): void;
  finish?(run: Run): void | Promise<void>;
}
