import type { Settlement } from '../store/store.js';
import type { ActiveJob } from './running.js';

/** What a worker tells its listeners. Everything about a job is told when the store has accepted it. */
export interface WorkerEvents<T> {
  /** A job is done. With handlers in processes, the result is not at hand here. */
  completed: (job: ActiveJob<T>, result: unknown) => void;
  /** An attempt has failed; `retrying` or `dead` follows. */
  failed: (job: ActiveJob<T>, error: unknown) => void;
  /** The next attempt begins after so many milliseconds. */
  retrying: (job: ActiveJob<T>, error: unknown, delay: number) => void;
  dead: (job: ActiveJob<T>, error: unknown) => void;
  /** The worker has lost its leases, and its jobs run elsewhere: it was stopped, or could not reach the store. */
  stalled: (error: Error) => void;
  /** As `onError`. */
  error: (error: Error, what: string) => void;
  /** Nothing is ready in the queue any more, and no handler runs. */
  drained: () => void;
  closing: () => void;
}
export type WorkerEventName = keyof WorkerEvents<unknown>;
export const WORKER_EVENTS: readonly WorkerEventName[] = [
  'completed',
  'failed',
  'retrying',
  'dead',
  'stalled',
  'error',
  'drained',
  'closing',
];

/** How the handler of a job ended. */
type Ending<T> = { job: ActiveJob<T>; value?: unknown; error?: unknown };

/** The listeners of a worker. Without any, nothing is kept and nothing is looked up. */
export class WorkerListeners<T> {
  readonly #listeners = new Map<WorkerEventName, Set<(...args: never[]) => void>>();
  readonly #endings = new WeakMap<Settlement, Ending<T>>();

  constructor(private readonly onError: (error: Error, what: string) => void) {}

  get hasAny(): boolean {
    return this.#listeners.size > 0;
  }

  add<N extends WorkerEventName>(name: N, listener: WorkerEvents<T>[N]): void {
    const known = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, known.add(listener));
  }

  remove<N extends WorkerEventName>(name: N, listener: WorkerEvents<T>[N]): void {
    const known = this.#listeners.get(name);
    known?.delete(listener);
    if (known?.size === 0) this.#listeners.delete(name);
  }

  /** A listener that throws, or whose promise rejects, harms nobody else. */
  emit<N extends WorkerEventName>(name: N, ...args: Parameters<WorkerEvents<T>[N]>): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      try {
        const result: unknown = (listener as (...given: unknown[]) => unknown)(...args);
        if (result instanceof Promise) result.catch((error: Error) => this.onError(error, `listener of '${name}'`));
      } catch (error) {
        this.onError(error as Error, `listener of '${name}'`);
      }
    }
  }

  /** Remembers how a handler ended until the store has accepted it. */
  ended(settlement: Settlement, ending: Ending<T>): void {
    this.#endings.set(settlement, ending);
  }

  settled(batch: readonly Settlement[], applied: readonly boolean[]): void {
    if (!this.hasAny) return;
    batch.forEach((settlement, i) => {
      const ending = applied[i] ? this.#endings.get(settlement) : undefined;
      if (ending) this.#tell(settlement, ending);
    });
  }

  #tell({ outcome }: Settlement, { job, value, error }: Ending<T>): void {
    if (outcome.to === 'done') this.emit('completed', job, value);
    if (outcome.to === 'cancelled' || !('error' in outcome) || outcome.error === undefined) return;
    const cause = error ?? new Error(outcome.error);
    this.emit('failed', job, cause);
    if (outcome.to === 'dead') this.emit('dead', job, cause);
    else this.emit('retrying', job, cause, outcome.to === 'scheduled' ? outcome.delay : 0);
  }
}
