import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Engine } from '../engine/engine.js';
import { CroreError } from '../errors.js';
import type { Signal, WorkerSession } from '../store/store.js';
import { Claimer } from './claimer.js';
import type { Heartbeat } from './heartbeat.js';
import type { ResolvedWorkOptions } from './options.js';
import { SettlementBatcher } from './settler.js';
import { type Prepare, Slots } from './slots.js';

export interface WorkerSetup<T> {
  engine: Engine;
  heartbeat: Heartbeat;
  queue: string;
  options: ResolvedWorkOptions;
  maxPayload: number;
  prepare: Prepare<T>;
  onError: (error: Error, what: string) => void;
  onClosed: (worker: Worker<T>) => void;
}

const REJOIN_PAUSE = 250;

/**
 * Works on a queue until closed. It has a session in the store, kept alive by the heartbeat; what it claims goes through
 * `Intake`, runs in `Slots`, and is reported by `Settler`. A lost session is replaced by a new one under a new name.
 */
export class Worker<T> {
  readonly #setup: WorkerSetup<T>;
  readonly #claimer: Claimer;
  readonly #slots: Slots<T>;
  readonly #settler: SettlementBatcher;
  readonly #unwatch: () => void;
  readonly #unsubscribe: () => void;
  readonly #ready: Promise<void>;
  #session: WorkerSession;
  #joined = false;
  #joining: Promise<void>;
  #closing: Promise<void> | undefined;

  constructor(setup: WorkerSetup<T>) {
    const { engine, queue, options } = setup;
    this.#setup = setup;
    this.#session = this.#newSession();
    this.#settler = new SettlementBatcher(
      engine.store,
      queue,
      setup.onError,
      () => this.#claimer.fill(),
      () => this.#claimer.reconcile(),
    );
    this.#slots = new Slots(setup, this.#settler, () => this.#claimer.fill());
    this.#claimer = new Claimer(engine.store, queue, options.concurrency, this.#slots, this.#settler, {
      session: () => (this.#joined && !this.#closing ? this.#session : undefined),
      lost: () => this.#lost('its session is gone'),
      onError: setup.onError,
    });
    const stops = [engine.maintenance.watch(queue, options), engine.scheduleRunner.watch()];
    this.#unwatch = () => {
      for (const stop of stops) stop();
    };
    this.#unsubscribe = engine.store.subscribe(queue, (signal) => this.#onSignal(signal));
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

  #newSession(): WorkerSession {
    const { queue, options } = this.#setup;
    const base = options.name ?? `${hostname()}-${process.pid}`;
    return { queue, worker: `${base}-${randomBytes(4).toString('hex')}`, lease: options.lease };
  }

  async #join(): Promise<void> {
    const { engine, heartbeat, queue, options } = this.#setup;
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
        heartbeat.add(
          { ...session, beat: options.heartbeat, hung: options.hung },
          {
            lost: () => this.#lost('its heartbeat came too late', session),
            late: (recovered) => this.#late(recovered),
          },
        );
        this.#joined = true;
        this.#claimer.hold(false);
        return;
      } catch (error) {
        this.#setup.onError(error as Error, `joining queue '${queue}'`);
        await new Promise((resolve) => setTimeout(resolve, REJOIN_PAUSE));
      }
    }
  }

  #onSignal(signal: Signal): void {
    switch (signal.type) {
      case 'work':
        this.#claimer.wake();
        return;
      case 'cancelled':
        this.#slots.stop(signal.token, new CroreError('LEASE_LOST', 'the job was cancelled'));
        return;
      case 'reset':
        this.#claimer.reconcile();
        return;
      case 'finished':
      case 'events':
        return;
    }
  }

  /** Everything in hand belongs to others now: handlers are told, their results ignored, a new session is opened. */
  #lost(why: string, session: WorkerSession = this.#session): void {
    if (session !== this.#session || this.#closing) return;
    const { heartbeat, queue, onError } = this.#setup;
    const error = new CroreError('LEASE_LOST', `worker ${session.worker} of queue '${queue}' lost its leases: ${why}`);
    onError(error, 'session');
    heartbeat.remove(session.worker);
    this.#joined = false;
    this.#slots.abandon(error);
    this.#settler.abandon();
    this.#session = this.#newSession();
    this.#joining = this.#join();
  }

  /** No beat gets through: handlers are told to stop while the lease still stands. What they finish may still count. */
  #late(recovered: boolean): void {
    this.#claimer.hold(!recovered);
    if (recovered) return;
    const cause = new CroreError('STORE_UNREACHABLE', 'no beat gets through');
    this.#slots.stopAll(
      new CroreError('LEASE_LOST', 'the store cannot be reached and the lease is about to end', { cause }),
    );
  }

  async #close(): Promise<void> {
    const { engine, heartbeat, queue, options } = this.#setup;
    this.#claimer.close();
    this.#settler.hurry();
    await this.#joining;
    await this.#claimer.settled();
    this.#slots.giveBackWaiting();
    await this.#slots.drained(options.grace);
    this.#slots.giveBackRunning(new CroreError('CLOSED', 'the worker was closed'));
    await this.#settler.flushed();
    this.#unsubscribe();
    this.#unwatch();
    heartbeat.remove(this.#session.worker);
    await engine.store.leave(queue, this.#session.worker).catch(() => {}); // it expires by itself
    this.#setup.onClosed(this);
  }
}
