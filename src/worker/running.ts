import { CroreError } from '../errors.js';
import { type Duration, milliseconds } from '../job/duration.js';
import type { Entry, Job, Lease, Spec } from '../job/job.js';
import type { Counted } from '../job/transitions.js';
import type { ProgressUpdate } from '../store/store.js';

/** The job as its handler sees it. */
export interface ActiveJob<T> {
  /** Undefined for a raw task, which has no id until it fails. */
  readonly id: string | undefined;
  readonly queue: string;
  readonly payload: T;
  /** 1 for the first delivery. */
  readonly attempt: number;
  /** How many workers died while they held this job. */
  readonly crashes: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Fencing token of the lease: pass it to systems that can reject a stale one. */
  readonly token: string;
  /** Aborted on cancellation, lost lease, end of the reservation, and shutdown. */
  readonly signal: AbortSignal;
  /** Records the job's progress; any JSON value. Rejects with LEASE_LOST when this worker no longer holds the job. */
  progress(value: unknown): Promise<void>;
  /** Appends a line to the job's log. */
  log(line: string): Promise<void>;
  /** Requests another delivery after `delay` without counting an attempt; return afterwards. */
  snooze(delay: Duration): void;
  /** Returns the job to the front of its queue without counting an attempt; return afterwards. */
  release(): void;
}

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
  snoozed: number | undefined;
  /** The handler returned it to the queue. */
  released = false;
  /** Already settled without the handler: whatever it still returns is ignored. */
  over = false;
  /** Why the handler was asked to stop, if it was. */
  stopped: Error | undefined;
  #controller: AbortController | undefined;

  constructor(
    readonly queue: string,
    readonly entry: Entry,
    fallback: { spec: Spec },
    private readonly read: (entry: Entry) => T,
    private readonly note: (lease: Lease, note: ProgressUpdate) => Promise<boolean>,
  ) {
    const job: Partial<Job> = entry.job ?? {};
    this.lease = entry.lease;
    this.attempt = job.attempt ?? 1;
    this.crashes = job.crashes ?? 0;
    this.spec = job.spec ?? fallback.spec;
    this.priority = job.priority ?? 0;
    this.createdAt = job.createdAt ?? 0;
  }

  get id(): string | undefined {
    return this.lease.id;
  }

  /** Decoded on first access. */
  get payload(): T {
    if (!this.#decoded) this.setPayload(this.read(this.entry));
    return this.#payload as T;
  }

  setPayload(payload: T): void {
    this.#payload = payload;
    this.#decoded = true;
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

  /** Asks the handler to stop. */
  stop(reason: Error): void {
    this.stopped ??= reason;
    this.#controller?.abort(reason);
  }

  async progress(value: unknown): Promise<void> {
    const text = JSON.stringify(value);
    if (text === undefined)
      throw new CroreError('BAD_PAYLOAD', `progress is a ${typeof value}, which JSON cannot hold`);
    if (text.length > 65_536)
      throw new CroreError('PAYLOAD_TOO_LARGE', `progress is ${text.length} characters, the limit is 65536`);
    await this.#write({ progress: text });
  }

  async log(line: string): Promise<void> {
    await this.#write({ log: `${String(line).replaceAll('\n', ' ')}\n` });
  }

  snooze(delay: Duration): void {
    this.snoozed = milliseconds(delay, 'snooze');
  }

  release(): void {
    this.released = true;
  }

  async #write(note: ProgressUpdate): Promise<void> {
    if (await this.note(this.lease, note)) return;
    const error = new CroreError('LEASE_LOST', `the lease of ${describeEntry(this)} is gone`);
    this.stop(error);
    throw error;
  }
}

export function describeEntry(job: { id: string | undefined; queue: string }): string {
  return job.id === undefined ? `a task of queue '${job.queue}'` : `job '${job.id}' of queue '${job.queue}'`;
}
