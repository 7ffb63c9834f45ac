import type { Body, Lease } from '../job/job.js';
import type { ProgressUpdate } from '../store/store.js';
import type { SentError } from './sent-error.js';

/** Messages between a worker and the processes or threads of its handler. */

export interface HostSetup {
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
}

/** Messages to a process or thread. `written`: the number of a note, and whether the lease was still held. */
export type HostCommand =
  | { run: SentJob }
  | { stop: SentError }
  | { written: number; held: boolean }
  | { written: number; failed: SentError }
  | { end: true };

/** How a handler ended. `unencodable`: it returned something that cannot be a result. */
export interface HandlerEnd {
  /** How many milliseconds the handler took. */
  took?: number;
  result?: Body;
  unencodable?: SentError;
  thrown?: SentError;
  snoozed?: number;
  released?: boolean;
}

/** Messages from a process or thread. */
export type HostReply =
  | { ready: true }
  | { unloadable: SentError }
  | { note: number; update: ProgressUpdate }
  | { end: HandlerEnd };

/** A reply as it is sent: a handler may send messages of its own, which mean nothing to us. */
export interface ReplyMessage {
  crore: HostReply;
}

export function replyOf(message: unknown): HostReply | undefined {
  return (message as Partial<ReplyMessage> | null | undefined)?.crore;
}

/** A message carries the whole memory that bytes are a part of, so bytes of a shared one are copied before. */
export function compact<T>(value: T): T | Uint8Array {
  if (!(value instanceof Uint8Array) || value.byteLength === value.buffer.byteLength) return value;
  return new Uint8Array(value);
}
