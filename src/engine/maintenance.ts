import type { Engine } from './engine.js';
import { sweepQueue } from './sweeper.js';

/** How a queue is looked after while somebody in this process works on it. */
export interface SweepPolicy {
  lease: number;
  sweep: number;
  maxCrashes: number;
}

interface MaintenanceTask {
  name: string;
  every: (care: SweepPolicy) => number;
  run: (engine: Engine, queue: string, care: SweepPolicy) => Promise<void>;
}

/** Every background duty of a queue. One table, so that nothing runs that is not listed here. */
const TASKS: readonly MaintenanceTask[] = [{ name: 'sweep', every: (care) => care.sweep, run: sweepQueue }];

/** Runs the duties of each queue that is worked on here, each one never twice at once. */
export class Maintenance {
  readonly #timers = new Map<string, { users: number; care: SweepPolicy; timers: NodeJS.Timeout[] }>();

  constructor(private readonly engine: Engine) {}

  /** Starts looking after a queue; returns the way to stop. */
  watch(queue: string, care: SweepPolicy): () => void {
    const known = this.#timers.get(queue);
    if (known) known.users += 1;
    else this.#timers.set(queue, { users: 1, care, timers: TASKS.map((duty) => this.#start(duty, queue, care)) });
    return () => this.#unwatch(queue);
  }

  /** Runs every duty of every queue that is looked after, without waiting for its time. */
  async run(): Promise<void> {
    for (const [queue, { care }] of [...this.#timers]) {
      for (const duty of TASKS) await duty.run(this.engine, queue, care);
    }
  }

  close(): void {
    for (const { timers } of this.#timers.values()) for (const timer of timers) clearInterval(timer);
    this.#timers.clear();
  }

  #unwatch(queue: string): void {
    const known = this.#timers.get(queue);
    if (!known || --known.users > 0) return;
    for (const timer of known.timers) clearInterval(timer);
    this.#timers.delete(queue);
  }

  #start(duty: MaintenanceTask, queue: string, care: SweepPolicy): NodeJS.Timeout {
    let running = false;
    return setInterval(() => {
      if (running) return;
      running = true;
      duty
        .run(this.engine, queue, care)
        .catch((error: Error) => this.engine.onError(error, `${duty.name} of queue '${queue}'`))
        .finally(() => {
          running = false;
        });
    }, duty.every(care)).unref();
  }
}
