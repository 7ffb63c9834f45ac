import type { Body, Bytes, Entry, Job, JobRef, Lease, NewJob, Spec, State, Terminal } from '../job/job.js';
import type { Outcome } from '../job/transitions.js';
import type { Activity, HistoryRange, Interval } from './history.js';
import type { RawStore } from './raw-store.js';

/**
 * The contract of every store. Each method is atomic (batches: per call, at most `MAX_BATCH` entries), costs O(batch)
 * regardless of the backlog, and uses the store's clock. Stores make no decisions, log nothing and keep no metrics.
 */
export interface Store {
  /** The store's clock, as accurately as this process knows it. */
  now(): number;
  /**
   * URL of a second connection, to be opened in the heartbeat thread; absent where only this process can send
   * heartbeats.
   */
  readonly threadUrl?: string;
  /** How many concurrent claims pay off: one where calls are synchronous, more across a network. */
  readonly maxParallelClaims: number;
  /** Problems with this store's configuration that an operator should know (no persistence, an eviction policy …). */
  readonly warnings: readonly string[];
  /** Schedules, which add jobs repeatedly. */
  readonly schedules: ScheduleStore;
  /** Events of jobs. */
  readonly events: EventStore;
  /** Jobs from sources, which have an order of their own. */
  readonly sources: SourceStore;
  /** Jobs that wait for many others, which can be added over time. */
  readonly batches: BatchStore;
  /** What happened in each queue over time; absent behind a job server, which keeps it. */
  readonly history?: HistoryStore;
  /** Direct access to raw tasks; absent behind a job server. */
  readonly raw?: RawStore;

  /** Adds raw tasks at the back. False: the queue is full and none was added. */
  push(queue: string, tasks: readonly Bytes[], limits?: Capacity): Promise<boolean>;
  /**
   * Adds jobs. An unknown upstream job rejects the whole call with UNKNOWN_UPSTREAM, a batch that is not open with BATCH_CLOSED or
   * NOT_FOUND.
   */
  add(queue: string, jobs: readonly NewJob[], limits?: Capacity): Promise<AddOutcome[]>;
  /**
   * Adds jobs through a connection that the caller opened on the same store, as part of its transaction. Absent where
   * transactions cannot be shared.
   */
  addIn?(connection: unknown, queue: string, jobs: readonly NewJob[], limits?: Capacity): AddOutcome[];
  /** The same where connections are asynchronous. */
  addInAsync?(connection: unknown, queue: string, jobs: readonly NewJob[], limits?: Capacity): Promise<AddOutcome[]>;
  /**
   * Writes a copy of the whole store to a new file; blocks meanwhile. Absent where the store has means of its own.
   */
  backup?(file: string): void;
  /**
   * Claims up to `n` entries for a worker with a session, and renews that session. If there are none and the worker `waits`, the store may lease up
   * to `n` entries to it as soon as they are added, once, and send them as a signal: what the signal does not reach is among its leases.
   */
  claim(session: WorkerSession, n: number, waits?: boolean): Promise<Claim>;
  /** Nothing is sent any more to a worker that has waited. Absent where nothing is sent. */
  withdraw?(session: WorkerSession): Promise<void>;
  /** Applies each outcome whose token still matches; false where it does not. */
  settle(queue: string, settlements: readonly Settlement[]): Promise<boolean[]>;
  /** Records progress or log lines of a running job; false if the lease is gone. */
  recordProgress(queue: string, lease: Lease, note: ProgressUpdate): Promise<boolean>;

  /** Opens a worker's session at a queue. The name of a lost session must not be reused. */
  join(queue: string, worker: string, session: NewSession): Promise<void>;
  /** Renews sessions; false where a session is gone. */
  heartbeat(sessions: readonly WorkerSession[]): Promise<boolean[]>;
  /** Ends a session, if it holds nothing; a session that still holds entries is left to expire. */
  leave(queue: string, worker: string, onlyIfExpired?: boolean): Promise<void>;
  /** The leases of a worker according to the store. */
  leasesOf(queue: string, worker: string): Promise<Lease[]>;

  /**
   * Promotes due jobs, removes records past their retention, and returns the entries of dead workers and ended
   * reservations.
   */
  sweep(queue: string, options: SweepOptions): Promise<SweepResult>;
  /**
   * Sweeps queues whose last sweep said that there is nothing to do for some time; false where that has changed and a whole sweep is needed.
   * Absent where one call for many queues costs as much as one for each.
   */
  sweepQuiet?(queues: readonly QuietQueue[]): Promise<boolean[]>;
  /**
   * Of these queues, those in which something is ready. `ask` is called when the store learns that this may have changed and it should be asked again; it also has to be asked
   * every second, and knows what it need not look at. Absent where nothing can become ready without a signal.
   */
  withReady?(queues: readonly string[], ask: () => void): Promise<string[]>;

  get(queue: string, ids: readonly string[]): Promise<(Job | undefined)[]>;
  list(queue: string, options: ListOptions): Promise<JobPage>;
  /** Jobs, in this queue or others, that wait for a job: the first ones, and how many there are. */
  dependents(queue: string, id: string, limit: number): Promise<Dependents>;
  count(queue: string): Promise<Counts>;
  queues(): Promise<string[]>;
  workers(queue: string): Promise<WorkerInfo[]>;

  /**
   * Reports success without a token, for jobs that were delivered: active jobs, and jobs that wait for a retry and have
   * had no report since their delivery, become done. True where this call did it.
   */
  reportSuccess(queue: string, ids: readonly string[]): Promise<boolean[]>;
  /** Cancels jobs that have not ended; true where this call did it. Their histories say who did it, if it was a person. */
  cancel(queue: string, ids: readonly string[], by?: string): Promise<boolean[]>;
  /**
   * Moves ended jobs that are in one of these states to the back of their waiting list with their counts reset; true where this call
   * did it. `by`: as above.
   */
  rerun(queue: string, ids: readonly string[], from: readonly Terminal[], by?: string): Promise<boolean[]>;
  /**
   * Changes a job that waits; a new time or priority moves it to the back. Returns the state in which it was found: only blocked,
   * scheduled and ready jobs are changed.
   */
  update(queue: string, id: string, changes: JobChanges): Promise<State | undefined>;
  /** Removes the records of ended jobs; true where this call did it. */
  remove(queue: string, ids: readonly string[]): Promise<boolean[]>;
  /**
   * Moves jobs to another queue. Scheduled and ready ones keep everything but their place, dead ones are ready there with their counts reset.
   * A job is in one of the two queues, or on its way, and never in both: a move that is interrupted is finished by a sweep of the first.
   * `by`: as above.
   */
  move(queue: string, ids: readonly string[], to: string, by?: string): Promise<MoveOutcome[]>;
  settings(queue: string): Promise<QueueSettings>;
  /** Changes the given settings; limits are replaced as a whole. */
  configure(queue: string, settings: Partial<QueueSettings>): Promise<void>;
  /** Removes everything in a queue, including running work. */
  obliterate(queue: string): Promise<void>;

  /** Requests a `finished` signal for these jobs. */
  watchForEnd(queue: string, ids: readonly string[]): Promise<void>;
  /**
   * Subscribes to work, ends and cancellations of a queue; returns a function that unsubscribes. Signals may be lost,
   * but there are no false ones.
   */
  subscribe(queue: string, listener: (signal: Signal) => void): () => void;
  close(): Promise<void>;
}

export interface ScheduleStore {
  /**
   * Stores a schedule; an identical one in the same queue stays unchanged and keeps its next tick. Returns the stored
   * schedule.
   */
  put(schedule: NewSchedule): Promise<Schedule>;
  /** Adds the jobs of a tick and sets the next tick, if the schedule is unchanged and this tick has not fired yet. */
  fire(schedule: Schedule, firing: { jobs: readonly NewJob[]; next?: number; last?: number }): Promise<boolean>;
  list(): Promise<Schedule[]>;
  /** Whether the store knows without a call that there are none. Absent where it never does. */
  areNone?(): boolean;
  /** False if there is no schedule of this name. */
  remove(name: string): Promise<boolean>;
}

export interface EventStore {
  /** Records the events of a queue for this many milliseconds; returns the position of the last event. */
  record(queue: string, ms: number): Promise<string>;
  /** Events after a position, oldest first. */
  read(queue: string, after: string, limit: number): Promise<EventPage>;
}

export interface SourceStore {
  /** Adds jobs if the source is at `step.from`, and moves it to `step.to` in the same transaction. */
  add(queue: string, jobs: readonly NewJob[], step: SourceStep): Promise<AddOutcome[] | 'stale'>;
  /** The position of a source in a queue; empty at the beginning. It outlives the jobs, and `obliterate`. */
  position(queue: string, source: string): Promise<string>;
}

export interface BatchStore {
  /**
   * No more members can be added: the job of the batch runs when all have ended. Returns the state in which it is then; undefined if
   * there is no such batch.
   */
  close(queue: string, id: string): Promise<State | undefined>;
  /** Members that have not ended, in no particular order; a member may be on two pages. */
  openMembers(queue: string, id: string, options: { limit: number; cursor?: string }): Promise<MemberPage>;
}

export interface MemberPage {
  members: JobRef[];
  cursor?: string;
}

/** The queue with the empty name has the history of all queues together. */
export interface HistoryStore {
  /** Adds to the current interval of every range, with the number of waiting and active entries as it is now. */
  record(queue: string, activity: Activity): Promise<void>;
  /** The intervals of a range in which something was recorded, oldest first. */
  read(queue: string, range: HistoryRange): Promise<Interval[]>;
}

/** Settings of a queue. */
export interface QueueSettings {
  /** Workers claim nothing. */
  paused: boolean;
  limits: QueueLimits;
  /** Absent if there is none; `configure` removes it with null. */
  breaker?: Breaker | null;
  /** What the breaker has seen; `configure` ignores it. */
  breakerState?: BreakerState;
}

/**
 * After `failures` failed attempts in a row, nothing is given out for `pause` milliseconds. Then one job is: if it succeeds, the breaker
 * closes; if it fails, or has done neither after another `pause`, it is one more job's turn. An attempt fails if its job is retried or dead;
 * lost workers do not count. To end a pause by hand (`paused: false`) closes the breaker, too.
 */
export interface Breaker {
  failures: number;
  pause: number;
}

export interface BreakerState {
  /** Failed attempts in a row. */
  failed: number;
  /** Set while the breaker is open: when it lets the next job through. */
  until?: number;
}

/**
 * A session with this name prefix belongs to a server that delivers jobs to remote workers. When it ends, a job with a
 * reservation stays with its worker until the reservation ends; all other jobs were not delivered yet and return
 * without an attempt being charged.
 */
export const SERVER_SESSION = 'relay:';

/** Maximum number of entries per atomic call. */
export const MAX_BATCH = 1_000;

/** How many entries may wait in a queue before producers are refused; absent means no limit. */
export interface Capacity {
  count?: number;
  bytes?: number;
}

/** At most `count` starts within `per` milliseconds, counted from the first of them. */
export interface Rate {
  count: number;
  per: number;
}

/** How many entries may be leased at once and start per interval: in the whole queue, and in each group. */
export interface QueueLimits {
  concurrency?: number;
  rate?: Rate;
  group?: GroupLimits;
}

/**
 * `ordered`: a job of a group starts only when the one that started before it has ended for good; while that one waits for its retry,
 * the group waits. Ordered groups have no other concurrency.
 */
export interface GroupLimits {
  concurrency?: number;
  rate?: Rate;
  ordered?: true;
}

/**
 * `replaced` and `extended`: a waiting job with the same unique key was changed instead; `id` is the id of that job.
 */
export type AddOutcome =
  | { outcome: 'created' }
  | { outcome: 'duplicate' | 'replaced' | 'extended'; id: string }
  | { outcome: 'full' };
export const CREATED: AddOutcome = Object.freeze({ outcome: 'created' });
export const FULL: AddOutcome = Object.freeze({ outcome: 'full' });

/**
 * `started`: it runs, is done or cancelled. `linked`: it needs other jobs, or they need it. `taken`: the other queue has a job of this id or
 * with its unique key, or had one and remembers the id.
 */
export type MoveOutcome = 'moved' | 'unknown' | 'started' | 'linked' | 'taken';

/** A step of a source through its own order; positions are opaque to the store and only compared for equality. */
export interface SourceStep {
  source: string;
  from: string;
  to: string;
}

export interface Claim {
  /**
   * `lost`: the worker has no session and must join again. `paused` with `nextAt`: the breaker is open, and lets the next job through
   * then.
   */
  status: 'ok' | 'paused' | 'lost';
  entries: Entry[];
  /** More entries are ready right now. */
  more: boolean;
  /** When the next scheduled job is due, if any. */
  nextAt?: number;
}

export interface Settlement {
  lease: Lease;
  outcome: Outcome;
  spec: Spec;
  priority: number;
  /** The record to create for a raw task that fails. */
  record?: NewJob;
  /** A line for the history of the job's attempts. */
  attempt?: string;
}

export interface ProgressUpdate {
  /** JSON text. */
  progress?: string;
  log?: string;
}

export interface NewSession {
  lease: number;
  info: string;
  /** If the session is lost, its raw tasks return unchanged, with no crash counted. */
  raw?: boolean;
}

export interface WorkerSession {
  queue: string;
  worker: string;
  lease: number;
}

export interface SweepOptions {
  lease: number;
  /** Skips a queue that was swept more recently than this; 0 always sweeps. */
  every: number;
}

/** A queue for `sweepQuiet`, and the lease of its sweeps. */
export interface QuietQueue {
  queue: string;
  lease: number;
  /** A queue that was swept more recently than this may be left out, whatever is in it: whoever did so takes care of it. Absent: none is. */
  every?: number;
}

/** An entry that the caller of the sweep must settle. */
export type LostEntry = Entry & {
  why: 'worker' | 'reservation';
  /** A raw task whose session asked to return its tasks unchanged. */
  raw?: boolean;
};

export interface SweepResult {
  lost: LostEntry[];
  /** One call could not do everything: there is more to sweep. */
  more: boolean;
  /** For so many milliseconds the queue needs no sweep unless a signal comes first; absent or 0: it needs the usual ones. */
  quietFor?: number;
  /** How many dead jobs this queue has dropped so far because there were too many of them; absent if none. */
  droppedDead?: number;
}

/** A schedule adds jobs to a queue repeatedly. Names are unique in the store. */
export interface NewSchedule {
  name: string;
  queue: string;
  /** The serialized schedule, opaque to the store. */
  definition: string;
  /** When the schedule was created; ticks may be counted from here. */
  since: number;
  /** The first tick. */
  next?: number;
}

export interface Schedule extends NewSchedule {
  /** The tick that added the last job. */
  last?: number;
}

export interface ListOptions {
  state: State;
  limit: number;
  /** Where the last page ended, as returned with it; entries added or removed in between do not shift the pages. */
  cursor?: string;
}

export interface JobPage {
  jobs: Job[];
  cursor?: string;
}

/** What to change of a waiting job; `delay` counts from the store's clock, `at` is absolute; at most one of them is set. */
export interface JobChanges {
  payload?: Body;
  priority?: number;
  at?: number;
  delay?: number;
  /** Who does it, for the history of the job, if it is a person. */
  by?: string;
}

export interface Dependents {
  jobs: { queue: string; id: string }[];
  total: number;
}

/** Entries by state; raw tasks count as ready or active. */
export type Counts = Record<State, number> & {
  /** Dead jobs that were dropped because there were too many of them; absent if none were. */
  droppedDead?: number;
};

export interface WorkerInfo {
  id: string;
  /** When the session ends unless a heartbeat renews it. */
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
  'parked',
  'released',
  'lost',
  'dead',
  'cancelled',
  'revived',
  /** To another queue. */
  'moved',
  /** The breaker of the queue has opened or closed. */
  'breaker',
  /** Recording had lapsed: events may be missing here. */
  'gap',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** An event of a job. */
export interface StoredEvent {
  /** Digits, possibly with a dash; later events have later positions. */
  position: string;
  type: EventType;
  /** Empty for a gap and for the breaker. */
  id: string;
  at: number;
  /** The number of the started attempt, the progress as JSON, the error, the queue it moved to, or `open` or `closed` for the breaker. */
  info: string;
}

export interface EventPage {
  events: StoredEvent[];
  /** Events after the position were dropped because the number of kept events is limited. */
  gap: boolean;
}

export type Signal =
  | { type: 'work' }
  | { type: 'finished'; id: string }
  | { type: 'cancelled'; token: string }
  /** New events were recorded. */
  | { type: 'events' }
  /** Entries that were leased to a worker of this process that waited for them. */
  | { type: 'delivered'; worker: string; entries: () => Entry[] }
  /** Signals may have been missed: check everything again. */
  | { type: 'reset' };
