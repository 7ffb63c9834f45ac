import type { Store } from '../store/store.js';
import type { VirtualClock } from './clock.js';
import type { FaultyStore } from './faulty-store.js';

/** A queue in which something can still happen at the current time. */
export interface BusyQueue {
  queue: string;
  ready: number;
  /** Held by living workers. */
  active: number;
  workers: number;
  paused: boolean;
  /** Its workers asked and got nothing: the limits of the queue or of its groups let nothing start now. */
  held: boolean;
}

export interface Rest {
  restless: BusyQueue[];
  /** The patience ran out while waiting for them. */
  ranOut: boolean;
}

/** Turns of the event loop without activity after which workers count as idle. */
const TURNS = 4;

/** Detects when everything that can happen without time passing has happened. */
export class IdleCheck {
  readonly #overlooked = new Map<string, { ready: number; active: number }>();

  constructor(
    private readonly store: Store,
    private readonly wire: FaultyStore,
    private readonly clock: VirtualClock,
  ) {}

  /**
   * Waits until nothing is ready or active, nothing can make progress, or `patience` real milliseconds have passed without
   * activity.
   */
  async wait(patience: number, only?: string): Promise<Rest> {
    let seen = -1;
    let since = performance.now();
    for (;;) {
      await turns(TURNS);
      const { activity } = this.wire;
      if (activity !== seen) {
        seen = activity;
        since = performance.now();
        continue;
      }
      const restless = await this.#restless(only);
      if (this.wire.activity !== seen || this.wire.pending > 0) continue;
      if (restless.length === 0 || this.#isHopeless(restless)) return { restless, ranOut: false };
      if (performance.now() - since > patience) return { restless, ranOut: true };
      // Handlers may be waiting for something in real time.
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  /** Handlers that exceeded the patience, and what waits behind them, are not waited for again. */
  overlook(restless: readonly BusyQueue[]): void {
    if (restless.length === 0) this.#overlooked.clear();
    for (const { queue, ready, active } of restless) this.#overlooked.set(queue, { ready, active });
  }

  async #restless(only: string | undefined): Promise<BusyQueue[]> {
    const queues = only === undefined ? await this.store.queues() : [only];
    const all: BusyQueue[] = [];
    for (const queue of queues) {
      const [{ ready, active }, holders] = await Promise.all([this.store.count(queue), this.store.workers(queue)]);
      const lost = holders.filter(({ id }) => this.wire.dead.has(id)).reduce((sum, { holds }) => sum + holds, 0);
      const workers = [...this.wire.living.values()].filter((session) => session.queue === queue).length;
      const one = { queue, ready, active: active - lost, workers, paused: this.wire.paused.has(queue), held: false };
      if (!this.#isNew(one) || (one.active === 0 && workers === 0 && only === undefined)) continue;
      if (one.active === 0 && workers > 0) one.held = await this.#isHeld(queue);
      all.push(one);
    }
    return all;
  }

  /** Whether a worker that is notified of work gets nothing. */
  async #isHeld(queue: string): Promise<boolean> {
    const before = this.wire.empties.get(queue);
    this.wire.signal(queue, { type: 'work' });
    await turns(TURNS);
    return this.wire.empties.get(queue) !== before;
  }

  #isNew({ queue, ready, active }: BusyQueue): boolean {
    const known = this.#overlooked.get(queue);
    if (known) Object.assign(known, { ready: Math.min(ready, known.ready), active: Math.min(active, known.active) });
    return ready > (known?.ready ?? 0) || active > (known?.active ?? 0);
  }

  /** No worker can run it, or everything that runs sleeps until the clock moves. */
  #isHopeless(restless: readonly BusyQueue[]): boolean {
    const active = restless.reduce((sum, one) => sum + one.active, 0);
    if (active > this.clock.sleepers) return false;
    return active > 0 || restless.every((one) => one.workers === 0 || one.paused || one.held);
  }
}

export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}
