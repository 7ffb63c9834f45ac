import { backoffDelay } from '../../job/backoff.js';
import type { NodeOutcome, NodeTask } from '../executors/executor.js';
import type { Watcher } from '../report/watcher.js';

interface RetriesOptions {
  watchers: readonly Watcher[];
  random: () => number;
  /** Puts it back into the line; uncharged, the attempt does not count. */
  again: (task: NodeTask, uncharged: boolean) => void;
}

/** Workers a node may take down with it. */
const MAX_CRASHES = 3;

/** Attempts that failed, and those that rest until the next one. */
export class Retries {
  readonly #crashes = new Map<string, number>();
  readonly #resting = new Map<NodeJS.Timeout, NodeTask>();

  constructor(private readonly options: RetriesOptions) {}

  /** Whether it is tried again: at once when it died with its worker, else after a rest. */
  retry(task: NodeTask, outcome: NodeOutcome): boolean {
    if (outcome.crashed) return this.#survives(task);
    const { retries, backoff } = task.spec.options;
    if (outcome.fatal || task.attempt > retries) return false;
    const wait = backoffDelay(backoff, task.attempt, this.options.random);
    for (const watcher of this.options.watchers) watcher.retried?.(task, outcome, wait);
    const timer = setTimeout(() => {
      this.#resting.delete(timer);
      this.options.again(task, false);
    }, wait);
    this.#resting.set(timer, task);
    return true;
  }

  /** Ends all rests; whose they were. */
  drop(): NodeTask[] {
    const tasks = [...this.#resting.values()];
    for (const timer of this.#resting.keys()) clearTimeout(timer);
    this.#resting.clear();
    return tasks;
  }

  #survives(task: NodeTask): boolean {
    const crashes = (this.#crashes.get(task.id) ?? 0) + 1;
    this.#crashes.set(task.id, crashes);
    if (crashes >= MAX_CRASHES) return false;
    this.options.again(task, true);
    return true;
  }
}
