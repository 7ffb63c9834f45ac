import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Engine } from '../engine/engine.js';
import { CroreError } from '../errors.js';
import type { Beat, Signal } from '../store/store.js';
import type { Heart } from './heart.js';
import { Intake } from './intake.js';
import type { ResolvedWorkOptions } from './options.js';
import { Settler } from './settler.js';
import { type Prepare, Slots } from './slots.js';

export interface WorkerSetup<T> {
  engine: Engine;
  heart: Heart;
  queue: string;
  options: ResolvedWorkOptions;
  maxPayload: number;
  prepare: Prepare<T>;
  onError: (error: Error, what: string) => void;
  onClosed: (worker: Worker<T>) => void;
}

const REJOIN_PAUSE = 250;

/**
 * Works on a queue until closed. It has a session in the store, kept alive by the heart; what it claims goes through
 * `Intake`, runs in `Slots`, and is reported by `Settler`. A lost session is replaced by a new one under a new name.
 */
export class Worker<T> {
  readonly #setup: WorkerSetup<T>;
  readonly #intake: Intake;
  readonly #slots: Slots<T>;
  readonly #settler: Settler;
  readonly #unwatch: () => void;
  readonly #unlisten: () => void;
  readonly #ready: Promise<void>;
  #session: Beat;
  #joined = false;
  #joining: Promise<void>;
  #closing: Promise<void> | undefined;

  constructor(setup: WorkerSetup<T>) {
    const { engine, queue, options } = setup;
    this.#setup = setup;
    this.#session = this.#newSession();
    this.#settler = new Settler(
      engine.store,
      queue,
      setup.onError,
      () => this.#intake.fill(),
      () => this.#intake.reconcile(),
    );
    this.#slots = new Slots(setup, this.#settler, () => this.#intake.fill());
    this.#intake = new Intake(engine.store, queue, options.concurrency, this.#slots, this.#settler, {
      session: () => (this.#joined && !this.#closing ? this.#session : undefined),
      lost: () => this.#lost('its session is gone'),
      onError: setup.onError,
    });
    const stops = [engine.duties.watch(queue, options), engine.scheduler.watch()];
    this.#unwatch = () => {
      for (const stop of stops) stop();
    };
    this.#unlisten = engine.store.listen(queue, (signal) => this.#hear(signal));
    this.#joining = this.#join();
    this.#ready = this.#joining;
  }

  /** The name of the current session. */
  get id(): string {
    return this.#session.worker;
  }

  /** Resolves once the worker is known to the store and asks for work. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /** Stops claiming, waits for running handlers up to the grace time, then gives their jobs back uncharged. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #newSession(): Beat {
    const { queue, options } = this.#setup;
    const base = options.name ?? `${hostname()}-${process.pid}`;
    return { queue, worker: `${base}-${randomBytes(4).toString('hex')}`, lease: options.lease };
  }

  async #join(): Promise<void> {
    const { engine, heart, queue, options } = this.#setup;
    const info = JSON.stringify({
      host: hostname(),
      pid: process.pid,
      concurrency: options.concurrency,
      since: Date.now(),
    });
    while (!this.#closing) {
      const session = this.#session;
      try {
        await engine.store.join(queue, session.worker, { lease: options.lease, info });
        if (this.#closing) return;
        heart.add(
          { ...session, beat: options.beat, hung: options.hung },
          {
            lost: () => this.#lost('its heartbeat came too late', session),
            late: (recovered) => this.#late(recovered),
          },
        );
        this.#joined = true;
        this.#intake.hold(false);
        return;
      } catch (error) {
        this.#setup.onError(error as Error, `joining queue '${queue}'`);
        await new Promise((resolve) => setTimeout(resolve, REJOIN_PAUSE));
      }
    }
  }

  #hear(signal: Signal): void {
    switch (signal.type) {
      case 'work':
        this.#intake.wake();
        return;
      case 'cancelled':
        this.#slots.stop(signal.token, new CroreError('LEASE_LOST', 'the job was cancelled'));
        return;
      case 'reset':
        this.#intake.reconcile();
        return;
      case 'finished':
      case 'events':
        return;
    }
  }

  /** Everything in hand belongs to others now: handlers are told, their results ignored, a new session is opened. */
  #lost(why: string, session: Beat = this.#session): void {
    if (session !== this.#session || this.#closing) return;
    const { heart, queue, onError } = this.#setup;
    const error = new CroreError('LEASE_LOST', `worker ${session.worker} of queue '${queue}' lost its leases: ${why}`);
    onError(error, 'session');
    heart.remove(session.worker);
    this.#joined = false;
    this.#slots.abandon(error);
    this.#settler.abandon();
    this.#session = this.#newSession();
    this.#joining = this.#join();
  }

  /** No beat gets through: handlers are told to stop while the lease still stands. What they finish may still count. */
  #late(recovered: boolean): void {
    this.#intake.hold(!recovered);
    if (recovered) return;
    const cause = new CroreError('STORE_UNREACHABLE', 'no beat gets through');
    this.#slots.stopAll(
      new CroreError('LEASE_LOST', 'the store cannot be reached and the lease is about to end', { cause }),
    );
  }

  async #close(): Promise<void> {
    const { engine, heart, queue, options } = this.#setup;
    this.#intake.close();
    this.#settler.hurry();
    await this.#joining;
    await this.#intake.settled();
    this.#slots.giveBackWaiting();
    await this.#slots.drained(options.grace);
    this.#slots.giveBackRunning(new CroreError('CLOSED', 'the worker was closed'));
    await this.#settler.flushed();
    this.#unlisten();
    this.#unwatch();
    heart.remove(this.#session.worker);
    await engine.store.leave(queue, this.#session.worker).catch(() => {}); // it expires by itself
    this.#setup.onClosed(this);
  }
}
