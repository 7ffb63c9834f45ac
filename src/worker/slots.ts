import type { Codec } from '../engine/codec.js';
import type { Engine } from '../engine/engine.js';
import { CLAIMED_TASK } from '../engine/raw-task.js';
import { CroreError, Fatal, isCroreError } from '../errors.js';
import type { Entry, Lease } from '../job/job.js';
import type { ProgressUpdate, Settlement } from '../store/store.js';
import { Deadlines } from './deadlines.js';
import type { ResolvedWorkOptions } from './options.js';
import { expired, type OutcomeContext, overran, released, returned, threw } from './outcome.js';
import { Prefetch } from './prefetch.js';
import { type ActiveJob, RunningJob } from './running.js';
import type { SettlementBatcher } from './settler.js';
import type { WorkerListeners } from './worker-events.js';

/** The user's handler, and how its payload is prepared. */
export interface Prepare<T> {
  /** Decodes the payload of an entry. */
  read: (entry: Entry) => T;
  /** Validates the payload before the handler runs, if there is a schema. */
  check?: (job: RunningJob<T>) => T | Promise<T>;
  handler: (job: ActiveJob<T>) => unknown;
  /** The codec of the queue, if it has one. Decoding can fail then, so it is done before the handler runs. */
  codec?: Codec;
  /** Each handler runs in a process of its own, so that a job that crashed can run beside others. */
  separate?: boolean;
  /** Ends the processes of the handler, if it has any, whether or not they are busy. */
  close?: () => Promise<void>;
}

interface SlotsSetup<T> {
  engine: Engine;
  queue: string;
  options: ResolvedWorkOptions;
  maxPayload: number;
  prepare: Prepare<T>;
}

/** Claimed entries that wait longer than this for slow handlers go back to the queue. */
const STALE = 200;
/** How long a suspect job waits for running handlers before it runs alongside them. */
const ISOLATION = 5_000;

/** Runs the handlers: at most `concurrency` at once, while the other claimed entries wait for a free slot. */
export class Slots<T> {
  readonly #setup: SlotsSetup<T>;
  readonly #context: OutcomeContext;
  readonly #running = new Map<string, RunningJob<T>>();
  readonly #reservations: Deadlines<RunningJob<T>>;
  readonly #prefetch: Prefetch;
  readonly #recordRun: (ms: number) => void;
  readonly #note: (lease: Lease, note: ProgressUpdate) => Promise<boolean>;
  #waiting: RunningJob<T>[] = [];
  /** Handlers that still run although the worker no longer holds their job; they keep their slot. */
  #zombies = 0;
  /** A job that may have crashed a worker: it waits to run alone, or runs alone. */
  #alone: RunningJob<T> | undefined;
  /** The last job was such a suspect: more may follow, so entries are claimed one at a time. */
  #cautious = false;
  #progressAt = performance.now();
  #staleTimer: NodeJS.Timeout | undefined;
  #drained: (() => void)[] = [];

  constructor(
    setup: SlotsSetup<T>,
    private readonly settler: SettlementBatcher,
    private readonly freed: () => void,
    private readonly listeners: WorkerListeners<T>,
  ) {
    const { engine, options, maxPayload } = setup;
    this.#setup = setup;
    this.#context = {
      options,
      random: engine.random,
      now: () => engine.store.now(),
      maxPayload,
      codec: setup.prepare.codec,
    };
    this.#reservations = new Deadlines((job) => this.#overrun(job));
    this.#prefetch = new Prefetch(options.concurrency);
    this.#recordRun = engine.metrics.runRecorder(setup.queue);
    this.#note = (lease, note) => engine.store.recordProgress(setup.queue, lease, note);
  }

  /** How many more entries can be accepted now. */
  get room(): number {
    if (this.#alone) return 0;
    const free = this.#setup.options.concurrency - this.#running.size - this.#zombies;
    if (this.#cautious) return free > 0 && this.#waiting.length === 0 ? 1 : 0;
    return free + this.#prefetch.ahead - this.#waiting.length;
  }

  /** A good size for a claim: a share of the prefetch, so that several claims are in flight; one when there is no prefetch. */
  get share(): number {
    return this.#cautious
      ? 1
      : Math.max(1, Math.floor(this.#prefetch.ahead / this.#setup.engine.store.maxParallelClaims));
  }

  /** Entries wait for a free slot. */
  get stocked(): boolean {
    return this.#waiting.length > 0;
  }

  /** Nothing runs and nothing waits here. */
  get isIdle(): boolean {
    return this.#running.size === 0 && this.#waiting.length === 0 && !this.#alone;
  }

  get tokens(): Set<string> {
    const tokens = new Set([...this.#running.keys(), ...this.#waiting.map((job) => job.token)]);
    if (this.#alone) tokens.add(this.#alone.token);
    return tokens;
  }

  accept(entries: readonly Entry[]): void {
    const { queue, prepare } = this.#setup;
    let bytes = 0;
    for (const entry of entries) {
      bytes += (entry.task ?? entry.job!.payload).length;
      const job = new RunningJob<T>(queue, entry, CLAIMED_TASK, prepare.read, this.#note);
      if (job.spec.reservation > 0) this.#reservations.set(job, job.spec.reservation);
      this.#waiting.push(job);
    }
    this.#prefetch.brought(entries.length, bytes);
    if (this.#alone) this.giveBackWaiting();
    else if (entries.length > 0) this.#cautious = this.#isSuspect(this.#waiting[0]!);
    this.#pump();
    if (this.#waiting.length > 0) this.#watchStale();
  }

  /** Asks one handler to stop, because the worker no longer holds its job. */
  stop(token: string, reason: Error): void {
    const job = this.#running.get(token);
    if (job) {
      this.#detach(job, reason);
      return;
    }
    const held = [...this.#waiting, ...(this.#alone ? [this.#alone] : [])].find((one) => one.token === token);
    if (!held) return;
    this.#reservations.delete(held);
    this.#waiting = this.#waiting.filter((waiting) => waiting !== held);
    if (this.#alone === held) this.#alone = undefined;
  }

  stopAll(reason: Error): void {
    for (const job of this.#running.values()) job.stop(reason);
    this.giveBackWaiting();
  }

  /** Forgets everything: the session is gone, and its leases with it. */
  abandon(reason: Error): void {
    this.#waiting = [];
    for (const job of [...this.#running.values()]) this.#detach(job, reason);
    this.#alone = undefined;
    this.#reservations.clear();
  }

  giveBackWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const job of waiting) this.#report(job, released(job, this.#context));
  }

  giveBackRunning(reason: Error): void {
    if (this.#alone && !this.#running.has(this.#alone.token)) {
      this.#report(this.#alone, released(this.#alone, this.#context));
      this.#alone = undefined;
    }
    for (const job of [...this.#running.values()]) {
      this.#report(job, released(job, this.#context));
      this.#detach(job, reason);
    }
  }

  /** Resolves when no handler is running, or after `ms`. */
  drained(ms: number): Promise<void> {
    if (this.#running.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#drained.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #pump(): void {
    while (this.#waiting.length > 0 && !this.#alone) {
      if (this.#isSuspect(this.#waiting[0]!)) void this.#isolate(this.#waiting.shift()!);
      else if (this.#running.size + this.#zombies < this.#setup.options.concurrency)
        this.#start(this.#waiting.shift()!);
      else return;
    }
  }

  #isSuspect(job: RunningJob<T>): boolean {
    return job.crashes > 0 && !this.#setup.prepare.separate;
  }

  /**
   * Runs a job that was held by a worker when it died alone, with nothing else claimed, so that its next crash affects no other
   * job: the poison job reaches its own crash limit and its neighbours survive. Waiting for long handlers is bounded.
   */
  async #isolate(suspect: RunningJob<T>): Promise<void> {
    this.#alone = suspect;
    this.giveBackWaiting();
    await this.drained(ISOLATION);
    await this.settler.flushed();
    if (this.#alone === suspect) this.#start(suspect);
    else this.freed();
  }

  #start(job: RunningJob<T>): void {
    if (job.spec.expires > 0 && this.#context.now() > job.createdAt + job.spec.expires) {
      if (this.#alone === job) this.#alone = undefined;
      this.#report(job, expired(job, this.#context));
      return;
    }
    this.#running.set(job.token, job);
    job.began = performance.now();
    const run = this.#call(job);
    run.then(
      (value) => this.#ended(job, () => this.#logged(job, returned(job, value, this.#context), undefined, value)),
      (error) => this.#ended(job, () => this.#logged(job, threw(job, error, this.#context), error)),
    );
  }

  /** Returns the handler's promise; a synchronous exception becomes a rejection. */
  #call(job: RunningJob<T>): PromiseLike<unknown> {
    const { prepare } = this.#setup;
    try {
      if (prepare.codec) job.decode();
    } catch (error) {
      return Promise.reject(error); // not fatal: another worker may have the key
    }
    if (prepare.check) {
      try {
        const payload = prepare.check(job);
        if (payload instanceof Promise) {
          return payload.then((value) => {
            job.setPayload(value);
            return prepare.handler(job);
          }, refuse);
        }
        job.setPayload(payload);
      } catch (error) {
        return Promise.reject(asRefusal(error));
      }
    }
    try {
      const result = prepare.handler(job);
      return Promise.resolve(result);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #ended(job: RunningJob<T>, settle: () => Parameters<SettlementBatcher['report']>[0]): void {
    this.#progressAt = performance.now();
    this.#prefetch.took(job.took ?? this.#progressAt - job.began);
    this.#recordRun(this.#progressAt - job.began);
    if (this.#alone === job) this.#alone = undefined;
    if (job.over) {
      this.#zombies -= 1;
    } else {
      this.#running.delete(job.token);
      this.#report(job, settle());
    }
    this.#pump();
    this.freed();
    if (this.#running.size === 0) for (const resolve of this.#drained.splice(0)) resolve();
  }

  #logged(job: RunningJob<T>, settlement: Settlement, error?: unknown, value?: unknown): Settlement {
    this.#setup.engine.failures.settled(this.#setup.queue, job, settlement, error);
    if (this.listeners.hasAny) this.listeners.ended(settlement, { job, value, error });
    return settlement;
  }

  #report(job: RunningJob<T>, settlement: Parameters<SettlementBatcher['report']>[0]): void {
    if (job.spec.reservation > 0) this.#reservations.delete(job);
    this.settler.report(settlement);
  }

  #overrun(job: RunningJob<T>): void {
    if (job.over) return;
    const started = this.#running.has(job.token);
    this.#waiting = this.#waiting.filter((waiting) => waiting !== job);
    // A handler that never started has not failed, so the job goes back.
    this.settler.report(started ? this.#logged(job, overran(job, this.#context)) : released(job, this.#context));
    if (this.#alone === job) this.#alone = undefined;
    if (started) this.#detach(job, new CroreError('TIMEOUT', 'the reservation of the job has ended'));
  }

  /** The job is settled or gone: asks its handler to stop; the handler keeps its slot until it returns. */
  #detach(job: RunningJob<T>, reason: Error): void {
    this.#running.delete(job.token);
    if (this.#alone === job) this.#alone = undefined;
    this.#zombies += 1;
    job.over = true;
    job.stop(reason);
    if (this.#running.size === 0) for (const resolve of this.#drained.splice(0)) resolve();
  }

  #watchStale(): void {
    this.#staleTimer ??= setInterval(() => {
      const stillFor = performance.now() - this.#progressAt;
      if (this.#waiting.length > 0 && stillFor > STALE) {
        this.#prefetch.stalled(stillFor);
        this.giveBackWaiting();
      }
      if (this.#waiting.length > 0) return;
      clearInterval(this.#staleTimer);
      this.#staleTimer = undefined;
    }, STALE / 2).unref();
  }
}

function refuse(error: unknown): never {
  throw asRefusal(error);
}

/** A payload that the schema refuses will also fail on a retry. */
function asRefusal(error: unknown): unknown {
  return isCroreError(error) ? new Fatal(error.message) : error;
}
