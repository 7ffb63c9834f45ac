import { hostname } from 'node:os';
import type { Engine } from '../engine/engine.js';
import { checkOneOf, describe } from '../engine/input/check.js';
import { CroreError } from '../errors.js';
import type { Signal, WorkerSession } from '../store/store.js';
import { Claimer } from './claimer.js';
import type { BatchJob } from './handlers/batch-job.js';
import type { Prepare } from './handlers/handler-call.js';
import type { Heartbeat } from './heartbeat/heartbeat.js';
import { LiveSession } from './live-session.js';
import type { ResolvedWorkOptions } from './options.js';
import type { ActiveJob } from './running.js';
import { SettlementBatcher } from './settler.js';
import { Slots } from './slots.js';
import { WORKER_EVENTS, type WorkerEventName, type WorkerEvents, WorkerListeners } from './worker-events.js';

export interface WorkerSetup<T> {
  engine: Engine;
  heartbeat: Heartbeat;
  queue: string;
  options: ResolvedWorkOptions;
  maxPayload: number;
  prepare: Prepare<T>;
  onError: (error: Error, what: string) => void;
  onClosed: (worker: { close(): Promise<void> }) => void;
}

/** Something to do around every job: `next()` goes on to the handler and returns its result. */
export type Middleware<T> = CallMiddleware<ActiveJob<T>>;
/** The same around every batch, for a handler that takes many jobs at once. */
export type BatchMiddleware<T, R = unknown> = CallMiddleware<BatchJob<T, R>[]>;
type CallMiddleware<C> = (given: C, next: () => Promise<unknown>) => unknown;
/** A worker whose handler takes many jobs at once. */
export type BatchWorker<T, R = unknown> = Worker<T, BatchJob<T, R>[]>;

/**
 * Works on a queue until closed. `LiveSession` is its session in the store, `Claimer` decides when and how much to claim, `Slots`
 * runs the handler, and `SettlementBatcher` reports the outcomes. `C` is what its handler is called with.
 */
export class Worker<T, C = ActiveJob<T>> {
  readonly #setup: WorkerSetup<T>;
  readonly #claimer: Claimer;
  readonly #slots: Slots<T>;
  readonly #settler: SettlementBatcher;
  readonly #unwatch: () => void;
  readonly #unsubscribe: () => void;
  readonly #ready: Promise<void>;
  readonly #session: LiveSession;
  readonly #listeners: WorkerListeners<T>;
  readonly #middleware: CallMiddleware<C>[] = [];
  readonly #handler: (given: C) => unknown;
  /** Jobs have come since the queue was last empty. */
  #hasWorked = false;
  #closing: Promise<void> | undefined;

  constructor({ onError, ...rest }: WorkerSetup<T>) {
    const report = (error: Error, what: string) => {
      this.#listeners.emit('error', error, what);
      onError(error, what);
    };
    this.#listeners = new WorkerListeners(onError);
    const setup = { ...rest, onError: report };
    const { engine, queue, options } = setup;
    this.#setup = setup;
    this.#handler = this.#called.handler;
    this.#settler = new SettlementBatcher(
      engine.store,
      queue,
      setup.onError,
      () => {
        this.#claimer.fill();
        this.#checkDrained();
      },
      (batch, applied) => this.#listeners.settled(batch, applied),
      () => this.#claimer.reconcile(),
    );
    this.#slots = new Slots(setup, this.#settler, () => this.#claimer.fill(), this.#listeners);
    this.#claimer = new Claimer(engine.store, queue, this.#slots.capacity, this.#slots, this.#settler, {
      session: () => this.#session.current,
      lost: (session) => this.#session.lose(session, 'its session is gone'),
      taken: (count) => this.#taken(count),
      onError: setup.onError,
    });
    const stops = [engine.maintenance.watch(queue, options, () => this.#claimer.wake()), engine.scheduleRunner.watch()];
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
   * Runs around the handler: `await next()` calls what was added after it, and in the end the handler, and returns the result. What is
   * added first is outermost. Add it right after `work()`, before the first job comes. After `workBatch()` it gets the jobs of a batch.
   */
  use(middleware: CallMiddleware<C>): this {
    mustBeFunction(middleware, 'the middleware');
    this.#middleware.push(middleware);
    // It begins when a job is given to the handler, so that must not be before the job can start.
    this.#setup.prepare.capacity = undefined;
    this.#called.handler = this.#middleware.reduceRight<(given: C) => unknown>(
      (next, one) => (given) => one(given, async () => next(given)),
      this.#handler,
    );
    return this;
  }

  /** What holds the handler, which takes a `C`. */
  get #called(): { handler: (given: C) => unknown } {
    const { prepare } = this.#setup;
    return (prepare.batch ?? prepare) as unknown as { handler: (given: C) => unknown };
  }

  /** Calls the listener for every such event; see `WorkerEvents`. */
  on<N extends WorkerEventName>(name: N, listener: WorkerEvents<T>[N]): this {
    checkOneOf(name, 'the event', WORKER_EVENTS);
    mustBeFunction(listener, 'the listener');
    this.#listeners.add(name, listener);
    return this;
  }

  off<N extends WorkerEventName>(name: N, listener: WorkerEvents<T>[N]): this {
    this.#listeners.remove(checkOneOf(name, 'the event', WORKER_EVENTS) as N, listener);
    return this;
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
      info: { host: hostname(), pid: process.pid, concurrency: this.#slots.capacity },
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
      case 'delivered':
        this.#claimer.deliver(signal.worker, signal.entries);
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
    this.#listeners.emit('stalled', error);
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

  #taken(count: number): void {
    if (count > 0) this.#hasWorked = true;
    this.#checkDrained();
  }

  #checkDrained(): void {
    if (!this.#hasWorked || !this.#claimer.isDry || !this.#slots.isIdle || this.#settler.busy) return;
    this.#hasWorked = false;
    this.#listeners.emit('drained');
  }

  async #close(): Promise<void> {
    this.#listeners.emit('closing');
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
    await this.#claimer.withdraw(this.#session.last);
    this.#unsubscribe();
    this.#unwatch();
    await this.#session.leave();
    this.#setup.onClosed(this);
  }
}

function mustBeFunction(given: unknown, what: string): void {
  if (typeof given !== 'function')
    throw new CroreError('BAD_OPTION', `${what} must be a function, not ${describe(given)}`);
}
