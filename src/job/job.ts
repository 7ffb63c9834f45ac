import type { ChildList } from './children.js';
import type { TimedLine } from './timed-lines.js';

/** The types of a job. Everything in this folder is pure: no store, no clock, no randomness of its own. */

export const STATES = ['blocked', 'scheduled', 'ready', 'active', 'done', 'dead', 'cancelled'] as const;
export type State = (typeof STATES)[number];
export type Terminal = 'done' | 'dead' | 'cancelled';
export type Bytes = Uint8Array;
/** A payload or result: a string is JSON (and never contains NUL), bytes are stored as the caller gave them. */
export type Body = string | Bytes;

export function isTerminal(state: State): state is Terminal {
  return state === 'done' || state === 'dead' || state === 'cancelled';
}

/** It has neither started nor ended. */
export function isWaiting(state: State): boolean {
  return state === 'blocked' || state === 'scheduled' || state === 'ready';
}

/** How long to wait before the next attempt. Times are milliseconds. */
export type Backoff =
  | { kind: 'fixed'; delay: number }
  | { kind: 'exponential'; delay: number; factor: number; cap: number; jitter: number }
  | { kind: 'quartic'; base: number; jitter: number; cap: number };

/** How long (`ms`) and how many (`count`, per queue and final state) records are kept after the end. */
export interface Keep {
  ms: number;
  count: number;
}

/**
 * How long the key is held. `waiting`: until the job is claimed; `alive`: until it ends; `window`: for the whole `ttl`,
 * whatever happens to the job.
 */
export type UniqueScope = 'waiting' | 'alive' | 'window';

/**
 * What a second job does to the holder of the key while that one waits: `keep` nothing (the default); `extend` restarts
 * its delay and the ttl of the key; `replace` also gives it the new payload.
 */
export type UniqueMode = 'keep' | 'extend' | 'replace';

export interface Unique {
  key: string;
  scope: UniqueScope;
  /** Milliseconds after which the key is free again; 0 means no limit. */
  ttl: number;
  mode?: UniqueMode;
}

/**
 * `success`: the job runs only after a done upstream job, any other end cancels it; `finished`: it runs after any end.
 */
export type NeedPolicy = 'success' | 'finished';

export interface Need {
  queue: string;
  id: string;
  on: NeedPolicy;
}

/** A job is identified by its queue and its id. */
export interface JobRef {
  queue: string;
  id: string;
}

/**
 * When the job of a batch runs. `finished`: when all members have ended; `failure`: also as soon as one has ended without success.
 */
export type BatchPolicy = 'finished' | 'failure';

/** The members of a batch, by how they ended. */
export interface BatchCounts {
  /** Members can still be added. */
  open: boolean;
  total: number;
  done: number;
  dead: number;
  cancelled: number;
}

/** The options of a job when it was added; they never change afterwards. */
export interface Spec {
  attempts: number;
  backoff: Backoff;
  /** How long an attempt may take, in milliseconds; 0 means as long as the worker lives. */
  reservation: number;
  /** Do not start later than this many milliseconds after creation; 0 means no expiry. */
  expires: number;
  /** No attempt begins later than this many milliseconds after creation, except the first; absent means no limit. */
  retryFor?: number;
  keep: { done: Keep; dead: Keep };
  /** For how many milliseconds after the job's end its id, chosen by the producer, stays taken. Absent for a generated id. */
  idWindow?: number;
  headers?: Record<string, string>;
  /** Jobs of a group take turns with those of other groups, and share the limits per group. */
  group?: string;
  unique?: Unique;
  needs?: Need[];
  /** The job that added it as a child; its record is kept until that job has ended. */
  parent?: JobRef;
  /** The batch of which it is a member. */
  batch?: JobRef;
  /** The job stands for a batch, and waits until it is complete. */
  batchPolicy?: BatchPolicy;
  /** The job was a raw task until its first failure. */
  raw?: boolean;
}

/** A job to be added to a store. `delay` counts from the store's clock, `at` is absolute; at most one is set. */
export interface NewJob {
  id: string;
  /** The id was generated for this call: no store can contain it yet. */
  fresh?: boolean;
  payload: Body;
  priority: number;
  delay?: number;
  at?: number;
  /** Replaces an ended job of this id; one that has not ended makes this job a duplicate as usual. */
  replaceEnded?: boolean;
  spec: Spec;
}

/** A job as stored. */
export interface Job {
  queue: string;
  id: string;
  state: State;
  payload: Body;
  priority: number;
  /** Number of deliveries that count against `spec.attempts`. */
  attempt: number;
  /** Number of workers that died while running this job. */
  crashes: number;
  createdAt: number;
  /** When it is due; of a ready job, since when it is ready, if it was not from the beginning (not known where it has a priority). */
  runAt?: number;
  startedAt?: number;
  finishedAt?: number;
  worker?: string;
  token?: string;
  result?: Body;
  error?: string;
  /** The job waits for its retry because its failure was reported, not because no report arrived. */
  answered?: boolean;
  progress?: string;
  /** The last values of its progress with their times, oldest first; see timed-lines.ts. */
  progressSteps?: TimedLine[];
  log?: string;
  /** When each line of the log was written; 0 if not known. */
  logTimes?: number[];
  /** The history of its attempts, and of what people did to it: see attempt.ts. */
  attempts?: string;
  /** The children that it waits, or has waited, for. */
  children?: ChildList;
  /** Of the job of a batch: what has become of its members. */
  batch?: BatchCounts;
  spec: Spec;
}

/** Proof of the right to settle: tokens are compared for equality, so a stale one changes nothing. */
export interface Lease {
  worker: string;
  token: string;
  /** Absent for a raw task, which has no identity. */
  id?: string;
  /** When it was claimed, by the clock of the store: tells the runs of a job apart where a report has to be repeated. */
  at?: number;
}

/** What a claim delivers: the exact bytes of a raw task, or a job; both with a lease. */
export type Entry = { lease: Lease; task: Bytes; job?: undefined } | { lease: Lease; job: Job; task?: undefined };
