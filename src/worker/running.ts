import { inspect } from 'node:util';
import { CroreError } from '../errors.js';
import type { ChildList } from '../job/children.js';
import { type Duration, milliseconds } from '../job/duration.js';
import { newId } from '../job/id.js';
import type { BatchCounts, Entry, Job, JobRef, Lease, Spec } from '../job/job.js';
import type { Counted } from '../job/transitions.js';
import type { ProgressUpdate } from '../store/store.js';
import { type ChildItem, ChildrenOfRun, type RelatedJob, type Relatives } from './relatives.js';

/** The job as its handler sees it. */
export interface ActiveJob<T> {
  /**
   * The same for all attempts: the key for idempotent effects. A raw task gets one when its handler asks for it, and keeps it if it
   * fails; if its worker is lost before that, the next delivery has another.
   */
  readonly id: string;
  /** A raw task: it has no record. */
  readonly isTask: boolean;
  readonly queue: string;
  readonly payload: T;
  /** 1 for the first delivery. */
  readonly attempt: number;
  /** How many attempts the job has in all. */
  readonly maxAttempts: number;
  /** How many workers died while they held this job. */
  readonly crashes: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Fencing token of the lease, different for every attempt: pass it to systems that can reject a stale one. */
  readonly token: string;
  /**
   * Aborted on cancellation, lost lease, end of the reservation, and shutdown. The reason is a CroreError: its code is LEASE_LOST,
   * TIMEOUT, or CLOSED for a shutdown, when there is time until the end of the worker's grace to save something.
   */
  readonly signal: AbortSignal;
  /** Records the job's progress; any JSON value. Rejects with LEASE_LOST when this worker no longer holds the job. */
  progress(value: unknown): Promise<void>;
  /** Appends a line to the job's log. */
  log(line: string): Promise<void>;
  /** Requests another delivery after `delay` without counting an attempt: `return job.snooze('5m')`. */
  snooze(delay: Duration): Settled;
  /** Returns the job to the front of its queue without counting an attempt: `return job.release()`. */
  release(): Settled;
  /** The jobs it needed, which have ended, with their results. */
  needs<R = unknown>(): Promise<RelatedJob<R>[]>;
  /**
   * Adds jobs as children of this one. A child without an id gets one that is the same if this job has to run again after a crash, so
   * that nothing is added twice.
   */
  addChildren(items: readonly ChildItem[]): Promise<JobRef[]>;
  /**
   * Ends this run without counting an attempt: the job runs again when its children have ended: `return job.waitForChildren()`. If one
   * that must succeed does not, the job is dead.
   */
  waitForChildren(): Settled;
  /** The children it has waited for, which have ended, with their results; none in the first run. */
  children<R = unknown>(): Promise<RelatedJob<R>[]>;
  /** Of the job of a batch: what has become of the members. */
  batch(): Promise<BatchCounts | undefined>;
}

declare const settled: unique symbol;
/** What a handler returns in place of a result when it has settled its job otherwise. */
export interface Settled {
  readonly [settled]: true;
}
export const SETTLED = Object.freeze({}) as Settled;

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

/** An entry held by a worker. Kept cheap: signals and notes are created on first use. */
export class RunningJob<T> implements ActiveJob<T>, Counted {
  readonly lease: Lease;
  readonly attempt: number;
  readonly crashes: number;
  readonly spec: Spec;
  readonly priority: number;
  readonly createdAt: number;
  #payload: T | undefined;
  #decoded = false;
  /** When it arrived here, on the monotonic clock. */
  arrived = 0;
  /** When the handler was called, on the same clock. */
  began = 0;
  /** How many milliseconds the handler took by its own account, if it runs elsewhere. */
  took: number | undefined;
  /** It waits behind another job in the process or thread of its handler, and has not started. */
  isSentAhead = false;
  snoozed: number | undefined;
  /** The handler returned it to the queue. */
  released = false;
  /** The children that the handler asked to wait for. */
  awaited: ChildList | undefined;
  /** Already settled without the handler: whatever it still returns is ignored. */
  over = false;
  /** Why the handler was asked to stop, if it was. */
  stopped: Error | undefined;
  /** Called each time the handler is asked to stop, for a handler that runs elsewhere. */
  onStop: ((reason: Error) => void) | undefined;
  /** The id of a raw task, once somebody has asked for it. */
  taskId: string | undefined;
  #controller: AbortController | undefined;
  #children: ChildrenOfRun | undefined;

  constructor(
    readonly queue: string,
    readonly entry: Entry,
    fallback: { spec: Spec },
    private readonly read: (entry: Entry) => T,
    private readonly note: (lease: Lease, note: ProgressUpdate) => Promise<boolean>,
    readonly relatives?: Relatives,
  ) {
    const job: Partial<Job> = entry.job ?? {};
    this.lease = entry.lease;
    this.attempt = job.attempt ?? 1;
    this.crashes = job.crashes ?? 0;
    this.spec = job.spec ?? fallback.spec;
    this.priority = job.priority ?? 0;
    this.createdAt = job.createdAt ?? 0;
  }

  get id(): string {
    if (this.lease.id !== undefined) return this.lease.id;
    this.taskId ??= newId(Date.now());
    return this.taskId;
  }

  get isTask(): boolean {
    return this.lease.id === undefined;
  }

  /** Decoded on first access. */
  get payload(): T {
    this.decode();
    return this.#payload as T;
  }

  /** Decodes now: throws here if that is not possible. */
  decode(): void {
    if (!this.#decoded) this.setPayload(this.read(this.entry));
  }

  setPayload(payload: T): void {
    this.#payload = payload;
    this.#decoded = true;
  }

  get maxAttempts(): number {
    return this.spec.attempts;
  }

  get token(): string {
    return this.lease.token;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.spec.headers ?? NO_HEADERS;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.stopped) this.#controller.abort(this.stopped);
    }
    return this.#controller.signal;
  }

  /** What `console.log(job)` shows. */
  [inspect.custom](): object {
    const { queue, id, payload, attempt, crashes, headers } = this;
    return { queue, id, payload, attempt, ...(crashes > 0 ? { crashes } : {}), headers };
  }

  /** Asks the handler to stop. */
  stop(reason: Error): void {
    this.stopped ??= reason;
    this.#controller?.abort(reason);
    this.onStop?.(reason);
  }

  async progress(value: unknown): Promise<void> {
    const text = JSON.stringify(value);
    if (text === undefined)
      throw new CroreError('BAD_PAYLOAD', `progress is a ${typeof value}, which JSON cannot represent`);
    if (text.length > 65_536)
      throw new CroreError('PAYLOAD_TOO_LARGE', `progress is ${text.length} characters, the limit is 65536`);
    await this.write({ progress: text });
  }

  async log(line: string): Promise<void> {
    // SQLite cuts texts at a NUL.
    await this.write({ log: `${String(line).replaceAll('\n', ' ').replaceAll('\0', '\uFFFD')}\n` });
  }

  snooze(delay: Duration): Settled {
    this.snoozed = milliseconds(delay, 'snooze');
    return SETTLED;
  }

  release(): Settled {
    this.released = true;
    return SETTLED;
  }

  async needs<R>(): Promise<RelatedJob<R>[]> {
    const { needs } = this.spec;
    return needs === undefined ? [] : ((await this.#related().read(needs)) as RelatedJob<R>[]);
  }

  async addChildren(items: readonly ChildItem[]): Promise<JobRef[]> {
    return this.#ownChildren('addChildren').add(items);
  }

  waitForChildren(): Settled {
    this.awaited = this.#ownChildren('waitForChildren').list;
    return SETTLED;
  }

  async children<R>(): Promise<RelatedJob<R>[]> {
    return this.isTask ? [] : ((await this.#ownChildren('children').results()) as RelatedJob<R>[]);
  }

  async batch(): Promise<BatchCounts | undefined> {
    return this.isTask ? undefined : (await this.#related().load(this)).batch;
  }

  #ownChildren(what: string): ChildrenOfRun {
    if (this.isTask) throw new CroreError('BAD_OPTION', `${what}: a raw task has no record, and cannot have children`);
    this.#children ??= new ChildrenOfRun({ queue: this.queue, id: this.id }, this.#related());
    return this.#children;
  }

  #related(): Relatives {
    if (this.relatives) return this.relatives;
    throw new CroreError('STORE_UNSUPPORTED', 'this handler cannot reach other jobs');
  }

  /** Records progress and lines of the log that are in their stored form. */
  async write(note: ProgressUpdate): Promise<void> {
    if (await this.note(this.lease, note)) return;
    const error = new CroreError('LEASE_LOST', `the lease of ${describeEntry(this)} was lost`);
    this.stop(error);
    throw error;
  }
}

export function describeEntry(job: { id: string; isTask: boolean; queue: string }): string {
  return job.isTask ? `a task of queue '${job.queue}'` : `job '${job.id}' of queue '${job.queue}'`;
}
