import type { Engine } from '../engine/engine.js';
import { CLAIMED_TASK } from '../engine/raw-task.js';
import { CroreError } from '../errors.js';
import type { Entry, Lease } from '../job/job.js';
import { MAX_BATCH, type ProgressUpdate, type Settlement } from '../store/store.js';
import { Deadlines } from './deadlines.js';
import { RunningBatchJob } from './handlers/batch-job.js';
import { Batches } from './handlers/batches.js';
import { callHandler, type Prepare } from './handlers/handler-call.js';
import type { ResolvedWorkOptions } from './options.js';
import { expired, type OutcomeContext, overran, released, returned, threw } from './outcome.js';
import { Prefetch } from './prefetch.js';
import { RunningJob } from './running.js';
import type { SettlementBatcher } from './settler.js';
import type { WorkerListeners } from './worker-events.js';

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

/**
 * Runs the handlers: at most `concurrency` at once, while the other claimed entries wait for a free slot. A handler that takes many jobs
 * is called for those that `Batches` puts together; each of them is settled, stopped and counted by itself.
 */
export class Slots<T> {
  readonly #setup: SlotsSetup<T>;
  readonly #context: OutcomeContext;
  readonly #running = new Map<string, RunningJob<T>>();
  readonly #reservations: Deadlines<RunningJob<T>>;
  readonly #prefetch: Prefetch;
  /** Set if the handler takes many jobs at once. */
  readonly #batches: Batches<T> | undefined;
  readonly #recordRun: (ms: number) => void;
  readonly #note: (lease: Lease, note: ProgressUpdate) => Promise<boolean>;
  #waiting: RunningJob<T>[] = [];
  /** Handlers that still run although the worker no longer holds their job; they keep their slot. */
  #zombies = 0;
  /** A job that may have crashed a worker: it waits to run alone, or runs alone. */
  #alone: RunningJob<T> | undefined;
  /** Entries to hold at most: one after a claim with such a suspect, and twice as many after each without, as groups mix them with others. */
  #most = Infinity;
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
    const { batch } = setup.prepare;
    this.#batches = batch && new Batches(batch, setup.prepare, setup.queue, () => this.#pump());
    this.#prefetch = new Prefetch(this.capacity);
    this.#recordRun = engine.metrics.runRecorder(setup.queue);
    this.#note = (lease, note) => engine.store.recordProgress(setup.queue, lease, note);
  }

  /** How many entries can run at once. */
  get capacity(): number {
    return this.#setup.options.concurrency * (this.#batches?.size ?? 1);
  }

  /** How many handlers can be called now. */
  get #free(): number {
    return this.#setup.options.concurrency - (this.#batches?.running ?? this.#running.size + this.#zombies);
  }

  /** How many more entries can be accepted now. */
  get room(): number {
    if (this.#alone) return 0;
    const free = this.#free * (this.#batches?.size ?? 1);
    const room = free + this.#prefetch.ahead - this.#waiting.length;
    if (this.#most === Infinity) return room;
    return free > 0 && this.#waiting.length === 0 ? Math.min(room, this.#most) : 0;
  }

  /** A good size for a claim: a share of the prefetch, so that several claims are in flight; one when there is no prefetch. */
  get share(): number {
    return this.#most < Infinity
      ? 1
      : Math.max(1, Math.floor(this.#prefetch.ahead / this.#setup.engine.store.maxParallelClaims));
  }

  /** Entries wait for a free slot, or enough of them have been sent ahead to where the handler runs. */
  get stocked(): boolean {
    const sentAhead = this.#running.size - this.capacity;
    return this.#waiting.length > 0 || sentAhead > this.#prefetch.ahead / 2;
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
    const arrived = performance.now();
    let bytes = 0;
    for (const entry of entries) {
      bytes += (entry.task ?? entry.job!.payload).length;
      const job = this.#batches ? this.#newBatchJob(entry) : this.#newJob(entry);
      job.arrived = arrived;
      this.#waiting.push(job);
    }
    this.#prefetch.brought(entries.length, bytes);
    if (this.#alone) this.giveBackWaiting();
    else if (this.#waiting.some((job) => this.#isSuspect(job))) this.#most = 1;
    else if (entries.length > 0) this.#most = this.#most * 2 < MAX_BATCH ? this.#most * 2 : Infinity;
    this.#pump();
    if (this.#waiting.length > 0) this.#watchStale();
  }

  #newJob(entry: Entry): RunningJob<T> {
    const { queue, prepare } = this.#setup;
    const job = new RunningJob<T>(queue, entry, CLAIMED_TASK, prepare.read, this.#note, prepare.relatives);
    if (job.spec.reservation > 0) this.#reservations.set(job, job.spec.reservation);
    return job;
  }

  /** Its reservation begins with its batch: otherwise a short one might end again and again while the batch waits for more jobs. */
  #newBatchJob(entry: Entry): RunningBatchJob<T> {
    const { queue, prepare } = this.#setup;
    return new RunningBatchJob<T>(queue, entry, CLAIMED_TASK, prepare.read, this.#note, prepare.relatives);
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
    if (this.#waiting.length === 0) return;
    const { prepare, options } = this.#setup;
    const ahead = prepare.capacity ? prepare.capacity() - options.concurrency : 0;
    while (this.#waiting.length > 0 && !this.#alone) {
      if (this.#isSuspect(this.#waiting[0]!)) void this.#isolate(this.#waiting.shift()!);
      else if (this.#free + ahead < 1) return;
      else if (!this.#batches) this.#start(this.#waiting.shift()!);
      else if (!this.#startNextBatch(this.#batches)) return;
    }
  }

  /** Returns false if the next batch waits for more jobs. A suspect among them ends the wait of those before it. */
  #startNextBatch(batches: Batches<T>): boolean {
    const waiting = this.#waiting as RunningBatchJob<T>[];
    const suspect = waiting.findIndex((job) => this.#isSuspect(job));
    const jobs = batches.next(suspect < 0 ? waiting : waiting.slice(0, suspect), suspect > 0 || this.room < this.share);
    if (!jobs) return false;
    const taken = new Set<RunningJob<T>>(jobs);
    this.#waiting = this.#waiting.filter((job) => !taken.has(job));
    this.#startBatch(batches, jobs);
    return true;
  }

  #startBatch(batches: Batches<T>, jobs: readonly RunningBatchJob<T>[]): void {
    const begun = jobs.filter((job) => this.#begin(job));
    if (begun.length === 0) return;
    this.#progressAt = performance.now();
    for (const job of begun) {
      if (job.spec.reservation > 0) this.#reservations.set(job, job.spec.reservation);
      this.#follow(job, job.begin());
    }
    void batches.run(begun).then(() => {
      this.#pump();
      this.freed();
    });
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
    if (this.#alone !== suspect) this.freed();
    else if (this.#batches) this.#startBatch(this.#batches, [suspect as RunningBatchJob<T>]);
    else this.#start(suspect);
  }

  #start(job: RunningJob<T>): void {
    if (this.#begin(job)) this.#follow(job, callHandler(this.#setup.prepare, job));
  }

  /** Returns false if the job has expired. */
  #begin(job: RunningJob<T>): boolean {
    if (job.spec.expires > 0 && this.#context.now() > job.createdAt + job.spec.expires) {
      if (this.#alone === job) this.#alone = undefined;
      this.#report(job, expired(job, this.#context));
      return false;
    }
    this.#running.set(job.token, job);
    job.began = performance.now();
    return true;
  }

  #follow(job: RunningJob<T>, run: PromiseLike<unknown>): void {
    run.then(
      (value) => this.#ended(job, () => this.#logged(job, returned(job, value, this.#context), undefined, value)),
      (error) => this.#ended(job, () => this.#logged(job, threw(job, error, this.#context), error)),
    );
  }

  #ended(job: RunningJob<T>, settle: () => Parameters<SettlementBatcher['report']>[0]): void {
    this.#progressAt = performance.now();
    this.#prefetch.took(job.took ?? this.#progressAt - job.began);
    if (!job.isSentAhead) this.#recordRun(this.#progressAt - job.began);
    // It comes back unstarted: what waits here came after it, and goes back with it to keep the order.
    else if (job.released) queueMicrotask(() => this.giveBackWaiting());
    if (this.#alone === job) this.#alone = undefined;
    if (job.over) {
      this.#zombies -= 1;
    } else {
      this.#running.delete(job.token);
      this.#report(job, settle());
    }
    if (!this.#batches) this.#pump(); // the end of a batch makes room, not that of one of its jobs
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
    const started = this.#running.has(job.token) && !job.isSentAhead;
    this.#waiting = this.#waiting.filter((waiting) => waiting !== job);
    // A handler that never started has not failed, so the job goes back.
    this.settler.report(started ? this.#logged(job, overran(job, this.#context)) : released(job, this.#context));
    if (this.#alone === job) this.#alone = undefined;
    if (this.#running.has(job.token))
      this.#detach(job, new CroreError('TIMEOUT', 'the reservation of the job has ended'));
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
      // A batch that waits for more jobs is not stale.
      if (this.#waiting.length > 0 && stillFor > STALE && this.#free < 1) {
        this.#prefetch.stalled(stillFor);
        this.giveBackWaiting();
      }
      if (this.#waiting.length > 0) return;
      clearInterval(this.#staleTimer);
      this.#staleTimer = undefined;
    }, STALE / 2).unref();
  }
}
