/** What a job is. Everything in this folder is pure: no store, no clock, no randomness of its own. */

export const STATES = ['blocked', 'scheduled', 'ready', 'active', 'done', 'dead', 'cancelled'] as const;
export type State = (typeof STATES)[number];
export type Terminal = 'done' | 'dead' | 'cancelled';
export type Bytes = Uint8Array;
/** A payload or result: text is JSON (never holding a NUL), bytes are whatever the caller gave. */
export type Body = string | Bytes;

export function isTerminal(state: State): state is Terminal {
  return state === 'done' || state === 'dead' || state === 'cancelled';
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

/** `waiting`: until the job is claimed; `alive`: until it ends; `window`: for the whole `ttl`, whatever becomes of it. */
export type UniqueScope = 'waiting' | 'alive' | 'window';

/**
 * What a second job does to the one that has the key, while that one waits: `keep` nothing (the default); `extend` starts
 * its delay and the time of the key anew; `replace` does that and gives it the new payload.
 */
export type UniqueMode = 'keep' | 'extend' | 'replace';

export interface Unique {
  key: string;
  scope: UniqueScope;
  /** Milliseconds after which the key is free again; 0 means no limit. */
  ttl: number;
  mode?: UniqueMode;
}

/** `success`: only a done upstream lets the job run, any other end cancels it; `finished`: any end will do. */
export type NeedPolicy = 'success' | 'finished';

export interface Need {
  queue: string;
  id: string;
  on: NeedPolicy;
}

/** What was asked of a job when it was added; it never changes afterwards. */
export interface Spec {
  attempts: number;
  backoff: Backoff;
  /** How long a report may take, in milliseconds; 0 means as long as the worker lives. */
  reservation: number;
  /** Do not start later than this many milliseconds after creation; 0 means never too late. */
  expires: number;
  keep: { done: Keep; dead: Keep };
  headers?: Record<string, string>;
  /** Jobs of one group take turns with those of others, and share the limits set per group. */
  group?: string;
  unique?: Unique;
  needs?: Need[];
  /** It was a raw task until it failed for the first time. */
  raw?: boolean;
}

/** A job on its way into a store. `delay` counts from the store's clock, `at` is absolute; at most one is set. */
export interface NewJob {
  id: string;
  /** The id was made up for this call: no store can know it. */
  fresh?: boolean;
  payload: Body;
  priority: number;
  delay?: number;
  at?: number;
  /** A job of this id that has ended makes room for this one; one that has not makes it a duplicate as ever. */
  replaceEnded?: boolean;
  spec: Spec;
}

/** A job as a store knows it. */
export interface Job {
  queue: string;
  id: string;
  state: State;
  payload: Body;
  priority: number;
  /** Deliveries that count against `spec.attempts`. */
  attempt: number;
  /** Workers that died with this job in hand. */
  crashes: number;
  createdAt: number;
  runAt?: number;
  startedAt?: number;
  finishedAt?: number;
  worker?: string;
  token?: string;
  result?: Body;
  error?: string;
  /** It waits for its retry because its failure was reported, not because nobody reported. */
  answered?: boolean;
  progress?: string;
  log?: string;
  spec: Spec;
}

/** Proof of the right to settle: compared for equality, so a stale one changes nothing. */
export interface Lease {
  worker: string;
  token: string;
  /** Absent for a raw task, which has no identity. */
  id?: string;
}

/** What a claim hands out: the very bytes of a raw task, or a job; both with a lease. */
export type Entry = { lease: Lease; task: Bytes; job?: undefined } | { lease: Lease; job: Job; task?: undefined };
