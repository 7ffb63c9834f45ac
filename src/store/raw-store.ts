import type { Bytes } from '../job/job.js';
import type { Store, WorkerSession } from './store.js';

/**
 * What a store does with raw tasks alone, for whoever claims and settles them by hand. The same promises as `Store`: each
 * verb is one transaction or one script. A token is enough to end or return a lease, whoever holds it.
 */
export interface RawStore {
  /** Puts groups of tasks at the back, each whole or not at all; false: it is unique and an equal unique task waits or is leased. */
  enqueue(queue: string, groups: readonly TaskGroup[]): Promise<boolean[]>;
  /** Takes up to `n` raw tasks for a session that exists, and prolongs it. The nonce is part of every token. */
  claim(session: WorkerSession, n: number, nonce: string): Promise<TaskClaim>;
  /** Ends leases and tells whoever listens; false where a lease is gone. */
  finish(queue: string, ends: readonly TaskCompletion[]): Promise<boolean[]>;
  /** How many raw tasks wait. */
  count(queue: string): Promise<number>;
  /** The same, asked by somebody who wants some: of an empty queue it is told when something comes. */
  waiting(queue: string): Promise<number>;
  /** The task that is next. */
  peek(queue: string): Promise<Bytes | undefined>;
  /** Every waiting raw task, next one first. O(n). */
  tasks(queue: string): Promise<Bytes[]>;
  /** Removes every waiting task that equals this one and tells whoever listens; returns how many. O(n). */
  remove(queue: string, task: Bytes): Promise<number>;
  /** Removes every waiting raw task and tells whoever listens. */
  clear(queue: string): Promise<void>;
  /** Tokens of leased tasks that equal this one. O(what is leased). */
  findLeased(queue: string, task: Bytes): Promise<string[]>;
  /** Declares a session dead, as if its lease had ended: it takes nothing more, and the next sweep returns what it holds. */
  expireSession(queue: string, worker: string): Promise<boolean>;
  /** Ends a session that has expired and holds nothing. */
  removeSession(queue: string, worker: string): Promise<void>;
  /** Replaces what a live session says of itself; false when it is gone. */
  updateSession(queue: string, worker: string, info: string): Promise<boolean>;
  /** Hears what befalls the raw tasks of a queue. News may be lost, never invented. */
  subscribe(queue: string, about: TaskTopic, listener: (news: TaskEvent) => void): Subscription;
}

/** Sessions here belong to workers rather than to one of their queues. No queue of a user can be called so. */
export const WORKER_REGISTRY = '';

/** Tasks of one group per call. */
export const MAX_GROUP = 10_000;

export interface TaskGroup {
  tasks: readonly Bytes[];
  unique: boolean;
}

/** The bytes of tasks may be parts of one buffer: who wants to keep them for long makes copies. */
export interface TaskClaim {
  /** `lost`: there is no such session, or it was declared dead. */
  status: 'ok' | 'paused' | 'lost';
  claimed: { token: string; task: Bytes }[];
}

export interface TaskCompletion {
  token: string;
  /** JSON text for the `done` news. */
  result?: string;
}

/** What one listens to: `ends` are tasks that were finished, `news` is all else. Ends nobody listens to cost nothing. */
export type TaskTopic = 'news' | 'ends';

export type TaskEvent =
  /** Tasks came or came back; no count: somebody saw some waiting. */
  | { type: 'work'; count?: number }
  | { type: 'done'; ends: CompletedTask[] }
  | { type: 'cancel'; task: Bytes }
  | { type: 'delete' }
  /** Something may have been missed. */
  | { type: 'reset' };

export interface CompletedTask {
  worker: string;
  token: string;
  task: Bytes;
  result?: string;
}

export interface Subscription {
  /** Settles once nothing more can be missed, or the attempt to listen has failed; never rejects. */
  ready: Promise<void>;
  stop(): void;
}

/** A store that has them. */
export type RawTaskStore = Store & { readonly raw: RawStore };
