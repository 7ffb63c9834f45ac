import type { Schedule } from '../../store/store.js';
import type { Engine } from '../engine.js';
import { firing } from './schedules.js';

/** How often to check for schedules created by other processes, in milliseconds. */
const REFRESH = 5_000;
/** Delay before retrying schedules that failed to fire. */
const PAUSE = 1_000;
const MOST_PASSES = 100;

/**
 * Fires schedules while this process runs. Every process that works or schedules does this; the store lets only one of them fire
 * each tick.
 */
export class ScheduleRunner {
  #users = 0;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #again = false;

  constructor(private readonly engine: Engine) {}

  /** Starts watching schedules; returns a function that stops it. */
  watch(): () => void {
    this.#users += 1;
    if (this.#users === 1) this.nudge();
    let stopped = false;
    return () => {
      if (stopped) return;
      stopped = true;
      this.#users -= 1;
      if (this.#users === 0) clearTimeout(this.#timer);
    };
  }

  /** Checks now, because something may have changed. */
  nudge(): void {
    if (this.#closed || this.#users === 0) return;
    void this.run().then((next) => this.#sleep(next));
  }

  /** Fires due schedules; resolves with the time of the next tick. Concurrent calls share one run. */
  async run(): Promise<number | undefined> {
    let next: number | undefined;
    this.#again = true;
    while (this.#again && !this.#closed) {
      if (this.#running) {
        await this.#running;
        continue;
      }
      this.#again = false;
      this.#running = this.#round()
        .then((at) => {
          next = at;
        })
        .catch((error: Error) => {
          if (!this.#closed) this.engine.onError(error, 'schedules');
        })
        .finally(() => {
          this.#running = undefined;
        });
      await this.#running;
    }
    return next;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** Fires each schedule until its next tick is in the future. A schedule that cannot fire now is left for a later round. */
  async #round(): Promise<number | undefined> {
    const { store } = this.engine;
    if (store.schedules.areNone?.()) return undefined;
    for (let pass = 0; ; pass++) {
      const schedules = await store.schedules.list();
      const due = schedules.filter(({ next }) => next !== undefined && next <= store.now());
      let fired = 0;
      if (pass < MOST_PASSES) for (const schedule of due) fired += (await this.#fire(schedule)) ? 1 : 0;
      if (fired === 0) return due.length > 0 ? store.now() + PAUSE : earliest(schedules);
    }
  }

  /** Returns true when this call fired it. A failing schedule must not keep the others from firing. */
  async #fire(schedule: Schedule): Promise<boolean> {
    try {
      return await this.engine.store.schedules.fire(schedule, firing(schedule, this.engine.store.now()));
    } catch (error) {
      if (!this.#closed) this.engine.onError(error as Error, `schedule '${schedule.name}'`);
      return false;
    }
  }

  #sleep(next: number | undefined): void {
    if (this.#closed || this.#users === 0) return;
    const wait = next === undefined ? REFRESH : Math.max(1, Math.min(REFRESH, next - this.engine.store.now()));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.nudge(), wait).unref();
  }
}

function earliest(schedules: readonly Schedule[]): number | undefined {
  const times = schedules.flatMap(({ next }) => next ?? []);
  return times.length > 0 ? Math.min(...times) : undefined;
}
