import { hostname } from 'node:os';
import type { Engine } from '../engine/engine.js';
import { CroreError } from '../errors.js';
import type { Signal, WorkerSession } from '../store/store.js';
import { Claimer } from './claimer.js';
import type { Heartbeat } from './heartbeat.js';
import { LiveSession } from './live-session.js';
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

/**
 * Works on a queue until closed. `LiveSession` is its session in the store, `Claimer` decides when and how much to claim, `Slots`
 * runs the handler, and `SettlementBatcher` reports the outcomes.
 */
export class Worker<T> {
  readonly #setup: WorkerSetup<T>;
  readonly #claimer: Claimer;
  readonly #slots: Slots<T>;
  readonly #settler: SettlementBatcher;
  readonly #unwatch: () => void;
  readonly #unsubscribe: () => void;
  readonly #ready: Promise<void>;
  readonly #session: LiveSession;
  #closing: Promise<void> | undefined;

  constructor(setup: WorkerSetup<T>) {
    const { engine, queue, options } = setup;
    this.#setup = setup;
    this.#settler = new SettlementBatcher(
      engine.store,
      queue,
      setup.onError,
      () => this.#claimer.fill(),
      () => this.#claimer.reconcile(),
    );
    this.#slots = new Slots(setup, this.#settler, () => this.#claimer.fill());
    this.#claimer = new Claimer(engine.store, queue, options.concurrency, this.#slots, this.#settler, {
      session: () => this.#session.current,
      lost: (session) => this.#session.lose(session, 'its session is gone'),
      onError: setup.onError,
    });
    const stops = [engine.maintenance.watch(queue, options), engine.scheduleRunner.watch()];
    this.#unwatch = () => {
      for (const stop of stops) stop();
    };
    this.#session = this.#open();
    this.#ready = this.#session.joining;
    this.#unsubscribe = engine.store.subscribe(queue, (signal) => this.#onSignal(signal));
  }

  /** The name of the current session. */
  get id(): string {
    return this.#session.worker;
  }

  /** Resolves once the worker has joined the queue and asks for work. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /**
   * Stops claiming, aborts the signals of running handlers (reason: code CLOSED), and waits for them up to the grace time; then
   * returns their jobs without counting an attempt.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #open(): LiveSession {
    const { engine, heartbeat, queue, options, onError } = this.#setup;
    return new LiveSession({
      store: engine.store,
      heartbeat,
      queue,
      name: options.name ?? `${hostname()}-${process.pid}`,
      info: { host: hostname(), pid: process.pid, concurrency: options.concurrency },
      lease: options.lease,
      heartbeatMs: options.heartbeat,
      hung: options.hung,
      joined: () => this.#claimer.hold(false),
      lost: (session, why) => this.#lost(session, why),
      late: (recovered) => this.#late(recovered),
      failed: (error) => onError(error, `joining queue '${queue}'`),
    });
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

  /**
   * The worker no longer holds any of its entries: its handlers are asked to stop, their results are ignored, and a new session
   * is opened.
   */
  #lost(session: WorkerSession, why: string): void {
    const { queue, onError } = this.#setup;
    const error = new CroreError('LEASE_LOST', `worker ${session.worker} of queue '${queue}' lost its leases: ${why}`);
    onError(error, 'session');
    this.#slots.abandon(error);
    this.#settler.abandon();
  }

  /** No heartbeat gets through: handlers are asked to stop while the lease is still valid. What they finish may still count. */
  #late(recovered: boolean): void {
    this.#claimer.hold(!recovered);
    if (recovered) return;
    const cause = new CroreError('STORE_UNREACHABLE', 'no heartbeat reaches the store');
    this.#slots.stopAll(
      new CroreError('LEASE_LOST', 'the store cannot be reached and the lease is about to end', { cause }),
    );
  }

  async #close(): Promise<void> {
    const { options } = this.#setup;
    const shutdown = new CroreError('CLOSED', 'the worker is shutting down');
    this.#session.close();
    this.#claimer.close();
    this.#settler.hurry();
    this.#slots.stopAll(shutdown);
    await this.#session.joining;
    await this.#claimer.settled();
    this.#slots.stopAll(shutdown); // a claim that was under way may have started handlers
    await this.#slots.drained(options.grace);
    this.#slots.giveBackRunning(shutdown);
    await Promise.all([this.#setup.prepare.close?.(), this.#settler.flushed()]);
    this.#unsubscribe();
    this.#unwatch();
    await this.#session.leave();
    this.#setup.onClosed(this);
  }
}
