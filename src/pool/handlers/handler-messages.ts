import type { ChildList } from '../../job/children.js';
import type { Body, Lease, Need } from '../../job/job.js';
import type { ProgressUpdate } from '../../store/store.js';
import type { Relatives } from '../../worker/relatives.js';
import type { SentError } from '../sent-error.js';

/** What a worker and the processes or threads of its handler send each other within the messages of the pool. */

export interface HandlerSetup {
  /** The URL of the handler's module. */
  module: string;
  /** The largest result, in bytes. */
  maxPayload: number;
}

/** A job on its way to its handler. */
export interface SentJob {
  queue: string;
  lease: Lease;
  id: string;
  payload: unknown;
  attempt: number;
  maxAttempts: number;
  crashes: number;
  headers: Readonly<Record<string, string>>;
  needs?: Need[];
}

/** How a handler ended. `unencodable`: it returned something that cannot be a result. */
export interface HandlerEnd {
  /** How many milliseconds the handler took. */
  took?: number;
  result?: Body;
  unencodable?: SentError;
  thrown?: SentError;
  snoozed?: number;
  released?: boolean;
  /** The children to wait for. */
  awaited?: ChildList;
}

/** Progress and log lines, with a number for the answer. */
export interface HandlerNote {
  note: number;
  update: ProgressUpdate;
}

/** A call of `Relatives`, which only the worker can make, with a number for the answer. */
export interface RelativesQuestion {
  ask: number;
  call: keyof Relatives;
  args: readonly unknown[];
}

export type RelativesAnswer = { asked: number; value: unknown } | { asked: number; failed: SentError };

/** Whether the lease was still held when a note was written, or why it could not be written. */
export type NoteAnswer = { written: number; held: boolean } | { written: number; failed: SentError };
