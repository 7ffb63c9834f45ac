import type { SweepPolicy } from '../engine/maintenance.js';
import { sweepQueue } from '../engine/sweeper.js';
import { WORKER_REGISTRY } from '../store/raw-store.js';
import { workerOf } from './names.js';
import type { OpenConnection } from './store-connection.js';

/** A worker as stored in the worker registry. */
export interface RegisteredWorker {
  session: string;
  workerId: string;
  deadline: number;
  /** Its session at each queue it works on. */
  queues: Record<string, string>;
}

/** How often a queue of a dead worker is swept before the rest is left to the next cleanup. */
const MOST_LOOKS = 10;

/** What instances do for each other: detect dead workers and return their work. */
export class Supervisor {
  /** Expired workers without queues, and when we first saw them expired. */
  readonly #seen = new Map<string, number>();
  #running: Promise<void> | undefined;

  constructor(
    private readonly connection: () => Promise<OpenConnection>,
    /** How to sweep a queue: as often as its shortest lease requires. */
    private readonly policy: SweepPolicy,
  ) {}

  /** All registered workers, dead or alive. */
  async registeredWorkers(): Promise<RegisteredWorker[]> {
    const { store } = await this.connection();
    return (await store.workers(WORKER_REGISTRY)).map(({ id, deadline, info }) => ({
      session: id,
      workerId: workerOf(id),
      deadline,
      queues: readQueues(info),
    }));
  }

  async living(): Promise<RegisteredWorker[]> {
    const { store } = await this.connection();
    return (await this.registeredWorkers()).filter(({ deadline }) => deadline > store.now());
  }

  /** Returns the work of every worker whose lease has ended. Concurrent callers share a running cleanup. */
  cleanup(): Promise<void> {
    this.#running ??= this.#cleanup().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Declares a worker dead and returns its work, from all queues; the worker finds out by its next heartbeat. */
  async fail(workerId: string): Promise<void> {
    for (const worker of await this.registeredWorkers()) {
      if (worker.workerId === workerId) await this.failSessions(worker.session, Object.entries(worker.queues));
    }
  }

  async failSessions(registered: string, queues: readonly (readonly [string, string])[]): Promise<void> {
    const { store } = await this.connection();
    await store.raw.expireSession(WORKER_REGISTRY, registered);
    await Promise.all(queues.map(([queue, session]) => this.failSession(queue, session)));
    await store.leave(WORKER_REGISTRY, registered, true);
  }

  async failSession(queue: string, session: string): Promise<void> {
    const { store } = await this.connection();
    await store.raw.expireSession(queue, session);
    await this.#returnWork(queue, session);
  }

  async #cleanup(): Promise<void> {
    const { store } = await this.connection();
    const expired = (await this.registeredWorkers()).filter(({ deadline }) => deadline <= store.now());
    const names = new Set(expired.map(({ session }) => session));
    for (const session of this.#seen.keys()) if (!names.has(session)) this.#seen.delete(session);
    await Promise.all(expired.map((worker) => this.#retire(worker)));
  }

  async #retire({ session, deadline, queues }: RegisteredWorker): Promise<void> {
    const { store } = await this.connection();
    const work = Object.entries(queues);
    const done = await Promise.all(work.map(([queue, name]) => this.#returnWork(queue, name)));
    if (done.includes(false)) return;
    // For a worker without queues only the clock counts: it gets a second chance, because the store may have been down.
    const first = this.#seen.get(session) ?? performance.now();
    this.#seen.set(session, first);
    if (work.length === 0 && deadline >= 0 && performance.now() - first < this.policy.lease) return;
    await store.leave(WORKER_REGISTRY, session, true);
    this.#seen.delete(session);
  }

  /**
   * Sweeps a queue until this session is gone. The first sweep after a gap of a lease only extends sessions, so it is
   * repeated for about two leases. False: not gone yet, or the session is alive after all.
   */
  async #returnWork(queue: string, session: string): Promise<boolean> {
    const { store, engine } = await this.connection();
    for (let look = 0; look < MOST_LOOKS; look++) {
      await sweepQueue(engine, queue, { ...this.policy, sweep: 0 });
      const found = (await store.workers(queue)).find(({ id }) => id === session);
      if (!found) return true;
      const isDead = found.deadline <= store.now() + this.policy.lease;
      if (!isDead) return false;
      await new Promise((resolve) => setTimeout(resolve, found.deadline < 0 ? 0 : this.policy.sweep));
    }
    return false;
  }
}

function readQueues(info: string): Record<string, string> {
  try {
    const { queues } = JSON.parse(info) as { queues?: Record<string, string> };
    return queues ?? {};
  } catch {
    return {};
  }
}
