import type { Engine } from '../engine/engine.js';
import { CLAIMED_TASK } from '../engine/raw-task.js';
import { CroreError, Fatal, isCroreError } from '../errors.js';
import type { Entry, Lease } from '../job/job.js';
import type { ProgressUpdate } from '../store/store.js';
import { Deadlines } from './deadlines.js';
import type { ResolvedWorkOptions } from './options.js';
import { expired, type OutcomeContext, overran, released, returned, threw } from './outcome.js';
import { Prefetch } from './prefetch.js';
import { type ActiveJob, RunningJob } from './running.js';
import type { SettlementBatcher } from './settler.js';

/** The user's handler, and how it comes by its payload. */
export interface Prepare<T> {
  /** Decodes the payload of an entry. */
  read: (entry: Entry) => T;
  /** Validates it before the handler runs, where there is a schema. */
  check?: (job: RunningJob<T>) => T | Promise<T>;
  handler: (job: ActiveJob<T>) => unknown;
}

interface SlotsSetup<T> {
  engine: Engine;
  queue: string;
  options: ResolvedWorkOptions;
  maxPayload: number;
  prepare: Prepare<T>;
}

/** Claimed entries that wait longer than this behind slow handlers go back to the queue. */
const STALE = 200;
/** How long a suspect waits for running handlers before it runs beside them. */
const ISOLATION = 5_000;

/** Where handlers run: at most `concurrency` at once, the rest of what was claimed waiting in line. */
export class Slots<T> {
  readonly #setup: SlotsSetup<T>;
  readonly #context: OutcomeContext;
  readonly #running = new Map<string, RunningJob<T>>();
  readonly #reservations: Deadlines<RunningJob<T>>;
  readonly #prefetch: Prefetch;
  readonly #note: (lease: Lease, note: ProgressUpdate) => Promise<boolean>;
  #waiting: RunningJob<T>[] = [];
  /** Handlers that still run though their job was taken away: they keep their slot. */
  #zombies = 0;
  /** A job that may have killed a worker: it waits to run alone, or runs alone. */
  #alone: RunningJob<T> | undefined;
  /** The last job was such a one: more may follow, so they are claimed one by one. */
  #cautious = false;
  #progressAt = performance.now();
  #staleTimer: NodeJS.Timeout | undefined;
  #drained: (() => void)[] = [];

  constructor(
    setup: SlotsSetup<T>,
    private readonly settler: SettlementBatcher,
    private readonly freed: () => void,
  ) {
    const { engine, options, maxPayload } = setup;
    this.#setup = setup;
    this.#context = { options, random: engine.random, now: () => engine.store.now(), maxPayload };
    this.#reservations = new Deadlines((job) => this.#overrun(job));
    this.#prefetch = new Prefetch(options.concurrency);
    this.#note = (lease, note) => engine.store.recordProgress(setup.queue, lease, note);
  }

  /** How many more entries can be used now. */
  get room(): number {
    if (this.#alone) return 0;
    const free = this.#setup.options.concurrency - this.#running.size - this.#zombies;
    if (this.#cautious) return free > 0 && this.#waiting.length === 0 ? 1 : 0;
    return free + this.#prefetch.ahead - this.#waiting.length;
  }

  /** A good size for a claim: part of what is fed ahead, so that several are under way; one where nothing is. */
  get share(): number {
    return this.#cautious
      ? 1
      : Math.max(1, Math.floor(this.#prefetch.ahead / this.#setup.engine.store.maxParallelClaims));
  }

  /** Entries wait for a free slot. */
  get stocked(): boolean {
    return this.#waiting.length > 0;
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
    else if (entries.length > 0) this.#cautious = this.#waiting[0]!.crashes > 0;
    this.#pump();
    if (this.#waiting.length > 0) this.#watchStale();
  }

  /** Tells one handler to stop, because its job is no longer its own. */
  stop(token: string, reason: Error): void {
    const job = this.#running.get(token);
    if (job) {
      this.#bury(job, reason);
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

  /** Forgets everything: the session is gone and its leases with it. */
  abandon(reason: Error): void {
    this.#waiting = [];
    for (const job of [...this.#running.values()]) this.#bury(job, reason);
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
      this.#bury(job, reason);
    }
  }

  /** Resolves when no handler runs any more, or after `ms`. */
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
      if (this.#waiting[0]!.crashes > 0) void this.#isolate(this.#waiting.shift()!);
      else if (this.#running.size + this.#zombies < this.#setup.options.concurrency)
        this.#start(this.#waiting.shift()!);
      else return;
    }
  }

  /**
   * A job that was in hand when a worker died runs alone, with nothing else claimed, so that its next crash is nobody
   * else's: the poison dies of its own count and its neighbours live. Long handlers are not waited for without end.
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
    const startedAt = performance.now();
    const run = this.#call(job);
    run.then(
      (value) => this.#ended(job, startedAt, () => returned(job, value, this.#context)),
      (error) => this.#ended(job, startedAt, () => threw(job, error, this.#context)),
    );
  }

  /** The handler's promise; what it throws at once counts as a rejection. */
  #call(job: RunningJob<T>): PromiseLike<unknown> {
    const { prepare } = this.#setup;
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

  #ended(job: RunningJob<T>, startedAt: number, settle: () => Parameters<SettlementBatcher['report']>[0]): void {
    this.#progressAt = performance.now();
    this.#prefetch.took(this.#progressAt - startedAt);
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

  #report(job: RunningJob<T>, settlement: Parameters<SettlementBatcher['report']>[0]): void {
    if (job.spec.reservation > 0) this.#reservations.delete(job);
    this.settler.report(settlement);
  }

  #overrun(job: RunningJob<T>): void {
    if (job.over) return;
    const started = this.#running.has(job.token);
    this.#waiting = this.#waiting.filter((waiting) => waiting !== job);
    // One that never started has not failed: it goes back.
    this.settler.report(started ? overran(job, this.#context) : released(job, this.#context));
    if (this.#alone === job) this.#alone = undefined;
    if (started) this.#bury(job, new CroreError('TIMEOUT', 'the reservation of the job has ended'));
  }

  /** The job is settled or gone; its handler is told, and keeps its slot until it returns. */
  #bury(job: RunningJob<T>, reason: Error): void {
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

/** A payload that the schema refuses will not get better. */
function asRefusal(error: unknown): unknown {
  return isCroreError(error) ? new Fatal(error.message) : error;
}
