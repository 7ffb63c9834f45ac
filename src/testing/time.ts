import type { Engine } from '../engine/engine.js';
import { sweepQueue } from '../engine/sweeper.js';
import { CroreError } from '../errors.js';
import type { Store } from '../store/store.js';
import type { VirtualClock } from './clock.js';
import type { FaultyStore } from './faulty-store.js';
import { turns } from './idle.js';

/** The sweep policy of queues without a worker. */
const POLICY = { lease: 10_000, sweep: 1_000, maxCrashes: 3 };
/** Maximum number of stops in one advance. */
const MOST_STOPS = 100_000;

/** Moves the clock from one time at which something is due to the next, and does there what passing time would do. */
export class Time {
  constructor(
    private readonly clock: VirtualClock,
    private readonly engine: Engine,
    private readonly real: Store,
    private readonly wire: FaultyStore,
  ) {}

  async advance(ms: number, settle: () => Promise<void>): Promise<void> {
    const end = this.clock.now + ms;
    await settle();
    for (let stops = 0; ; stops++) {
      if (stops === MOST_STOPS) {
        throw new CroreError(
          'TIMEOUT',
          `advance: timers were due ${MOST_STOPS} times within ${ms} ms: probably an endless loop`,
        );
      }
      const next = Math.min(end, await this.#nextEvent());
      // A sweep shortly before makes this one part of a regular series: after a long gap no worker would be declared dead.
      if (next - this.clock.now > 1) await this.#stop(next - 1);
      await this.#stop(next);
      await settle();
      if (next === end) return;
    }
  }

  /** Living workers send heartbeats, every queue is swept, schedules fire. */
  async #stop(at: number): Promise<void> {
    await turns(1); // calls made before belong to the time before
    this.clock.moveTo(at);
    this.wire.nextAt.clear();
    const sessions = [...this.wire.living.values()];
    if (sessions.length > 0) await this.real.heartbeat(sessions);
    this.wire.sweeping = true;
    try {
      await this.engine.maintenance.run();
      for (const queue of await this.real.queues()) {
        if (!sessions.some((session) => session.queue === queue)) await sweepQueue(this.engine, queue, POLICY);
      }
    } finally {
      this.wire.sweeping = false;
    }
    await this.engine.scheduleRunner.run();
    // What the limits of a queue held back may start now.
    for (const { queue } of sessions) this.wire.signal(queue, { type: 'work' });
  }

  /** When something is due next: a job, a schedule, a dead worker's lease, a reservation, a sleeper. */
  async #nextEvent(): Promise<number> {
    const times = [this.clock.nextWake, ...this.wire.nextAt.values()];
    for (const { next } of await this.real.schedules.list()) if (next !== undefined) times.push(next);
    for (const queue of await this.real.queues()) {
      const { jobs } = await this.real.list(queue, { state: 'scheduled', limit: 1 });
      times.push(...jobs.map((job) => job.runAt!));
      for (const { id, deadline } of await this.real.workers(queue)) if (this.wire.dead.has(id)) times.push(deadline);
      const active = await this.real.list(queue, { state: 'active', limit: 1_000 });
      for (const { spec, startedAt } of active.jobs)
        if (spec.reservation > 0) times.push(startedAt! + spec.reservation);
    }
    return Math.min(...times.filter((time) => time > this.clock.now));
  }
}
