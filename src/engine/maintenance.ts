import type { Engine } from './engine.js';
import { sweepQueue } from './sweeper.js';

/** How a queue is swept while this process has a worker on it. */
export interface SweepPolicy {
  lease: number;
  sweep: number;
  maxCrashes: number;
}

interface MaintenanceTask {
  name: string;
  every: (policy: SweepPolicy) => number;
  run: (engine: Engine, queue: string, policy: SweepPolicy) => Promise<void>;
}

/** Every background task of a queue. This table is complete: nothing runs that is not listed here. */
const TASKS: readonly MaintenanceTask[] = [{ name: 'sweep', every: (policy) => policy.sweep, run: sweepQueue }];

interface WatchedQueue {
  /** One for each worker on the queue. */
  policies: SweepPolicy[];
  timers: NodeJS.Timeout[];
}

/** Runs the maintenance of each queue this process works on; a task never runs twice at the same time. */
export class Maintenance {
  readonly #queues = new Map<string, WatchedQueue>();

  constructor(private readonly engine: Engine) {}

  /** Starts maintaining a queue; returns a function that stops it. */
  watch(queue: string, policy: SweepPolicy): () => void {
    const watched = this.#queues.get(queue) ?? { policies: [], timers: [] };
    this.#queues.set(queue, watched);
    watched.policies.push(policy);
    this.#restart(queue, watched);
    return () => this.#unwatch(queue, watched, policy);
  }

  /** Runs every task of every queue now. */
  async run(): Promise<void> {
    for (const [queue, { policies }] of [...this.#queues]) {
      for (const task of TASKS) await task.run(this.engine, queue, combined(policies));
    }
  }

  close(): void {
    for (const { timers } of this.#queues.values()) for (const timer of timers) clearInterval(timer);
    this.#queues.clear();
  }

  #unwatch(queue: string, watched: WatchedQueue, policy: SweepPolicy): void {
    const at = watched.policies.indexOf(policy);
    if (at < 0 || this.#queues.get(queue) !== watched) return;
    watched.policies.splice(at, 1);
    if (watched.policies.length > 0) {
      this.#restart(queue, watched);
      return;
    }
    for (const timer of watched.timers) clearInterval(timer);
    this.#queues.delete(queue);
  }

  #restart(queue: string, watched: WatchedQueue): void {
    for (const timer of watched.timers) clearInterval(timer);
    const policy = combined(watched.policies);
    watched.timers = TASKS.map((task) => this.#start(task, queue, policy));
  }

  #start(task: MaintenanceTask, queue: string, policy: SweepPolicy): NodeJS.Timeout {
    let running = false;
    return setInterval(() => {
      if (running) return;
      running = true;
      task
        .run(this.engine, queue, policy)
        .catch((error: Error) => this.engine.onError(error, `${task.name} of queue '${queue}'`))
        .finally(() => {
          running = false;
        });
    }, task.every(policy)).unref();
  }
}

/**
 * Combines the policies of all workers on a queue: the shortest lease and sweep interval, and the largest crash limit, so that no
 * job becomes dead too early.
 */
function combined(policies: readonly SweepPolicy[]): SweepPolicy {
  return {
    lease: Math.min(...policies.map(({ lease }) => lease)),
    sweep: Math.min(...policies.map(({ sweep }) => sweep)),
    maxCrashes: Math.max(...policies.map(({ maxCrashes }) => maxCrashes)),
  };
}
