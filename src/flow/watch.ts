import type { Run } from './run.js';
import type { End } from './spec.js';
import type { Outcome, Task } from './task.js';

/** Somebody who is told what happens in a run: progress, events, trace, joblog. None of them decides anything. */
export interface Watcher {
  begin?(run: Run): void;
  started?(task: Task): void;
  ended?(end: End, outcome: Outcome, task: Task): void;
  /** An attempt failed; the next comes after so many milliseconds. */
  retried?(task: Task, outcome: Outcome, wait: number): void;
  /** It will not run: `skipped` because of an upstream, or `cancelled`. */
  dropped?(id: string, state: 'skipped' | 'cancelled'): void;
  /** The runner itself has something to say. */
  said?(text: string): void;
  finish?(run: Run): void | Promise<void>;
}
