import type { NodeOutcome, NodeTask } from '../executors/executor.js';
import type { NodeEnd } from '../graph/node-spec.js';
import type { Run } from '../run/run.js';

/** Receives the events of a run: progress, events, trace, joblog. A watcher decides nothing. */
export interface Watcher {
  begin?(run: Run): void;
  started?(task: NodeTask): void;
  ended?(end: NodeEnd, outcome: NodeOutcome, task: NodeTask): void;
  /** An attempt failed; the next one follows after `wait` milliseconds. */
  retried?(task: NodeTask, outcome: NodeOutcome, wait: number): void;
  /** The node will not run: `skipped` because of an upstream node, or `cancelled`. */
  dropped?(id: string, state: 'skipped' | 'cancelled'): void;
  /** A message from the runner itself. */
  said?(text: string): void;
  finish?(run: Run): void | Promise<void>;
}
