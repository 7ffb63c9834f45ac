import type { Bytes, Entry, Job, Lease, NewJob, Spec, State } from '../job/job.js';
import type { Outcome } from '../job/transitions.js';
import type { RawStore } from './raw-store.js';

/**
 * The contract every store keeps. Each verb is atomic (batches: per call, at most `MAX_BATCH` entries), costs O(batch)
 * whatever the backlog, and takes its time from the store's clock. Stores decide nothing, log nothing, count nothing.
 */
export interface Store {
  /** The store's clock, as well as this process knows it. */
  now(): number;
  /** A second connection for the heartbeat thread, as a URL to open there; absent where only this process can beat. */
  readonly threadUrl?: string;
  /** How many claims are worth having under way at once: one where calls are synchronous, more across a network. */
  readonly maxParallelClaims: number;
  /** What an operator should know about how this store is set up (no persistence, an eviction policy …). */
  readonly warnings: readonly string[];
  /** Schedules, which make jobs again and again. */
  readonly schedules: ScheduleStore;
  /** What happened to jobs, for whoever asks for it. */
  readonly events: EventStore;
  /** Jobs that come from elsewhere in an order of their own. */
  readonly sources: SourceStore;
  /** Raw tasks by hand; absent behind a job server. */
  readonly raw?: RawStore;

  /** Puts raw tasks at the back. False: refused as a whole, the queue is full. */
  push(queue: string, tasks: readonly Bytes[], limits?: Capacity): Promise<boolean>;
  /** Puts jobs. An unknown upstream refuses the whole call with UNKNOWN_UPSTREAM. */
  add(queue: string, jobs: readonly NewJob[], limits?: Capacity): Promise<AddOutcome[]>;
  /**
   * The same through a connection that the caller opened on this very store, as part of its transaction. Absent where
   * transactions cannot be shared.
   */
  addIn?(connection: unknown, queue: string, jobs: readonly NewJob[], limits?: Capacity): AddOutcome[];
  /** Takes up to `n` entries for a worker whose session exists, and prolongs that session. */
  claim(session: WorkerSession, n: number): Promise<Claim>;
  /** Applies each move whose token still matches; false where it does not. */
  settle(queue: string, settlements: readonly Settlement[]): Promise<boolean[]>;
  /** Records progress or log lines of a running job; false when the lease is gone. */
  recordProgress(queue: string, lease: Lease, note: ProgressUpdate): Promise<boolean>;

  /** Opens a worker's session on a queue. After a session is lost its name must not be used again. */
  join(queue: string, worker: string, session: NewSession): Promise<void>;
  /** Prolongs sessions; false where one is gone. */
  heartbeat(sessions: readonly WorkerSession[]): Promise<boolean[]>;
  /** Ends a session that holds nothing; one that still holds something is left to expire. */
  leave(queue: string, worker: string): Promise<void>;
  /** What a worker holds according to the store. */
  leasesOf(queue: string, worker: string): Promise<Lease[]>;

  /** Promotes what is due, forgets what is no longer kept, and returns the entries of dead workers and ended reservations. */
  sweep(queue: string, options: SweepOptions): Promise<SweepResult>;

  get(queue: string, ids: readonly string[]): Promise<(Job | undefined)[]>;
  list(queue: string, options: ListOptions): Promise<JobPage>;
  count(queue: string): Promise<Counts>;
  queues(): Promise<string[]>;
  workers(queue: string): Promise<WorkerInfo[]>;

  /**
   * Success told without a token, by whoever was given a job before: active jobs, and those that were delivered, have not
   * been answered since and wait for their retry, are done. True where this call did it.
   */
  reportSuccess(queue: string, ids: readonly string[]): Promise<boolean[]>;
  /** Cancels whatever has not ended; true where this call did it. */
  cancel(queue: string, ids: readonly string[]): Promise<boolean[]>;
  /** Dead jobs go to the back of their line with fresh counts; true where this call did it. */
  retryDead(queue: string, ids: readonly string[]): Promise<boolean[]>;
  /** Drops the records of ended jobs; true where this call did it. */
  remove(queue: string, ids: readonly string[]): Promise<boolean[]>;
  settings(queue: string): Promise<QueueSettings>;
  /** Changes the settings that are given; limits are replaced as a whole. */
  configure(queue: string, settings: Partial<QueueSettings>): Promise<void>;
  /** Forgets everything a queue holds, running work included. */
  obliterate(queue: string): Promise<void>;

  /** Asks for a `finished` signal about these jobs. */
  watchForEnd(queue: string, ids: readonly string[]): Promise<void>;
  /** Hears of work, ends and cancellations of a queue; returns the way to stop. Signals may be lost, never invented. */
  subscribe(queue: string, listener: (signal: Signal) => void): () => void;
  close(): Promise<void>;
}

export interface ScheduleStore {
  /** Puts a schedule; one that says the same in the same queue stays as it is, with its next tick. Returns what holds. */
  put(schedule: NewSchedule): Promise<Schedule>;
  /** Adds the jobs of a tick and sets the next one, if the schedule still says the same and the tick is still to come. */
  fire(schedule: Schedule, firing: { jobs: readonly NewJob[]; next?: number; last?: number }): Promise<boolean>;
  list(): Promise<Schedule[]>;
  /** False when there is none of this name. */
  remove(name: string): Promise<boolean>;
}

export interface EventStore {
  /** Records the events of a queue for so many milliseconds; returns the position of the last one. */
  record(queue: string, ms: number): Promise<string>;
  /** Events after a position, oldest first. */
  read(queue: string, after: string, limit: number): Promise<EventPage>;
}

export interface SourceStore {
  /** Adds jobs if the source stands at `step.from`, and moves it to `step.to` in the same transaction. */
  add(queue: string, jobs: readonly NewJob[], step: SourceStep): Promise<AddOutcome[] | 'stale'>;
  /** Where a source stands in a queue; empty at the beginning. It outlives the jobs, and `obliterate`. */
  position(queue: string, source: string): Promise<string>;
}

/** What was set for a queue. */
export interface QueueSettings {
  /** Nothing is claimed. */
  paused: boolean;
  limits: QueueLimits;
}

/**
 * A session whose name starts so belongs to a server that hands jobs on to others. When it ends, a job with a reservation
 * stays with whoever got it until the reservation ends; the rest has not been handed on and returns uncharged.
 */
export const SERVER_SESSION = 'relay:';

/** Entries per atomic call. */
export const MAX_BATCH = 1_000;

/** Waiting entries a producer accepts in a queue; absent means no limit. */
export interface Capacity {
  count?: number;
  bytes?: number;
}

/** So many starts within so many milliseconds, counted from the first of them. */
export interface Rate {
  count: number;
  per: number;
}

/** How many entries may be leased at once and start per interval: of the whole queue, and of each group. */
export interface QueueLimits {
  concurrency?: number;
  rate?: Rate;
  group?: { concurrency?: number; rate?: Rate };
}

/** `replaced` and `extended`: a waiting job with the same unique key took over what it was asked to; `id` is that job's. */
export type AddOutcome =
  | { outcome: 'created' }
  | { outcome: 'duplicate' | 'replaced' | 'extended'; id: string }
  | { outcome: 'full' };
export const CREATED: AddOutcome = Object.freeze({ outcome: 'created' });
export const FULL: AddOutcome = Object.freeze({ outcome: 'full' });

/** A step of a source through its own order; positions are the source's own words, compared for equality. */
export interface SourceStep {
  source: string;
  from: string;
  to: string;
}

export interface Claim {
  /** `lost`: the worker has no session and must join again. */
  status: 'ok' | 'paused' | 'lost';
  entries: Entry[];
  /** More entries are ready right now. */
  more: boolean;
  /** When the next scheduled job is due, if any. */
  nextAt?: number;
}

export interface Settlement {
  lease: Lease;
  move: Outcome;
  spec: Spec;
  priority: number;
  /** A raw task that fails gets this record. */
  record?: NewJob;
}

export interface ProgressUpdate {
  /** JSON text. */
  progress?: string;
  log?: string;
}

export interface NewSession {
  lease: number;
  info: string;
  /** When it is lost, its raw tasks return as they were, with no crash counted. */
  raw?: boolean;
}

export interface WorkerSession {
  queue: string;
  worker: string;
  lease: number;
}

export interface SweepOptions {
  lease: number;
  /** A queue swept more recently than this is left alone; 0 sweeps in any case. */
  every: number;
}

/** An entry that must be settled by whoever swept it up. */
export type LostEntry = Entry & {
  why: 'worker' | 'reservation';
  /** A raw task whose session asked for its return as it was. */
  raw?: boolean;
};

export interface SweepResult {
  lost: LostEntry[];
  /** There was more to do than one call does. */
  more: boolean;
}

/** Something that makes jobs of a queue again and again. Names are unique in the store. */
export interface NewSchedule {
  name: string;
  queue: string;
  /** What it says, opaque to the store. */
  definition: string;
  /** When it was put; ticks may be counted from here. */
  since: number;
  /** The first tick. */
  next?: number;
}

export interface Schedule extends NewSchedule {
  /** The tick of the last job. */
  last?: number;
}

export interface ListOptions {
  state: State;
  limit: number;
  /** Where the last page ended, as that page said: what comes and goes meanwhile shifts nothing. */
  cursor?: string;
}

export interface JobPage {
  jobs: Job[];
  cursor?: string;
}

/** Entries by state; raw tasks count as ready or active. */
export type Counts = Record<State, number>;

export interface WorkerInfo {
  id: string;
  /** When the session ends unless it is beaten. */
  deadline: number;
  holds: number;
  info: string;
}

export const EVENT_TYPES = [
  'added',
  'changed',
  'started',
  'progress',
  'done',
  'retry',
  'snoozed',
  'released',
  'lost',
  'dead',
  'cancelled',
  'revived',
  /** Nobody recorded for a while: something may be missing here. */
  'gap',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Something that happened to a job. */
export interface StoredEvent {
  /** Digits, perhaps with a dash; later events have later positions. */
  position: string;
  type: EventType;
  /** Empty for a gap. */
  id: string;
  at: number;
  /** The attempt that started, the progress as JSON, or the error. */
  info: string;
}

export interface EventPage {
  events: StoredEvent[];
  /** Events after the position have been dropped: more were kept than there is room for. */
  gap: boolean;
}

export type Signal =
  | { type: 'work' }
  | { type: 'finished'; id: string }
  | { type: 'cancelled'; token: string }
  /** Something happened that somebody asked to have recorded. */
  | { type: 'events' }
  /** Something may have been missed: look at everything again. */
  | { type: 'reset' };
