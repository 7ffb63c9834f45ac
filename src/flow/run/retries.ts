import { backoffDelay } from '../../job/backoff.js';
import type { NodeOutcome, NodeTask } from '../executors/executor.js';
import type { Watcher } from '../report/watcher.js';

interface RetriesOptions {
  watchers: readonly Watcher[];
  random: () => number;
  /** Queues the task again; if `uncharged`, the attempt does not count. */
  again: (task: NodeTask, uncharged: boolean) => void;
}

/** How many workers may crash while running a node before it fails. */
const MAX_CRASHES = 3;

/** Counts failed attempts and keeps the tasks that wait for their next one. */
export class Retries {
  readonly #crashes = new Map<string, number>();
  readonly #resting = new Map<NodeJS.Timeout, NodeTask>();

  constructor(private readonly options: RetriesOptions) {}

  /** Whether the task is retried: at once when its worker crashed, else after a delay. */
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

  /** Cancels all retry delays and returns their tasks. */
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
