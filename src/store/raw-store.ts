import type { Bytes } from '../job/job.js';
import type { Store, WorkerSession } from './store.js';

/**
 * The operations of a store on raw tasks alone, for callers that claim and settle tasks themselves. The guarantees of
 * `Store` apply: each method is one transaction or one script. A token is enough to end or return a lease, no matter
 * who holds it.
 */
export interface RawStore {
  /**
   * Adds groups of tasks at the back, each group entirely or not at all; false: the group is unique and an equal unique
   * task waits or is leased.
   */
  enqueue(queue: string, groups: readonly TaskGroup[]): Promise<boolean[]>;
  /** Claims up to `n` raw tasks for an existing session, and renews it. The nonce is part of every token. */
  claim(session: WorkerSession, n: number, nonce: string): Promise<TaskClaim>;
  /** Ends leases and notifies subscribers; false where a lease is gone. */
  finish(queue: string, ends: readonly TaskCompletion[]): Promise<boolean[]>;
  /** The number of waiting raw tasks. A caller that wants work gets a task event when something comes to an empty queue. */
  count(queue: string, wantsWork?: boolean): Promise<number>;
  /** The next task. */
  peek(queue: string): Promise<Bytes | undefined>;
  /** Every waiting raw task, next one first. O(n). */
  tasks(queue: string): Promise<Bytes[]>;
  /** Removes every waiting task that equals this one and notifies subscribers; returns how many. O(n). */
  remove(queue: string, task: Bytes): Promise<number>;
  /** Removes every waiting raw task and notifies subscribers. */
  clear(queue: string): Promise<void>;
  /** Tokens of leased tasks that equal this one. O(number of leases). */
  findLeased(queue: string, task: Bytes): Promise<string[]>;
  /**
   * Declares a session dead, as if its lease had ended: it can claim nothing more, and the next sweep returns what it
   * holds.
   */
  expireSession(queue: string, worker: string): Promise<boolean>;
  /** Replaces the info of a live session; false if the session is gone. */
  updateSession(queue: string, worker: string, info: string): Promise<boolean>;
  /** Subscribes to task events of a queue. Events may be lost, but there are no false ones. */
  subscribe(queue: string, about: TaskTopic, listener: (event: TaskEvent) => void): Subscription;
}

/**
 * The name under which sessions belong to workers rather than to one of their queues. Users cannot create a queue of
 * this name.
 */
export const WORKER_REGISTRY = '';

/** Maximum number of tasks per group and call. */
export const MAX_GROUP = 10_000;

export interface TaskGroup {
  tasks: readonly Bytes[];
  unique: boolean;
}

/** The bytes of the tasks may be slices of one shared buffer: copy them to keep them for long. */
export interface TaskClaim {
  /** `lost`: the session does not exist, or was declared dead. */
  status: 'ok' | 'paused' | 'lost';
  claimed: { token: string; task: Bytes }[];
}

export interface TaskCompletion {
  token: string;
  /** JSON text for the `done` event. */
  result?: string;
}

/**
 * What to subscribe to: `ends` are finished tasks, `news` are all other task events. Ends without a subscriber cost
 * nothing.
 */
export type TaskTopic = 'news' | 'ends';

export type TaskEvent =
  /** Tasks were added or returned; without a count, some were seen waiting. */
  | { type: 'work'; count?: number }
  | { type: 'done'; ends: CompletedTask[] }
  | { type: 'cancel'; task: Bytes }
  | { type: 'delete' }
  /** Events may have been missed. */
  | { type: 'reset' };

export interface CompletedTask {
  worker: string;
  token: string;
  task: Bytes;
  result?: string;
}

export interface Subscription {
  /** Resolves once no further event can be missed, or the attempt to subscribe has failed; never rejects. */
  ready: Promise<void>;
  stop(): void;
}

/** A store with raw tasks. */
export type RawTaskStore = Store & { readonly raw: RawStore };
