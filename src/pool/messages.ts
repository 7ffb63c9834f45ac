import type { SentError } from './sent-error.js';

/** Messages between a pool and its processes or threads. Calls are known by the numbers that their member gave them. */

/**
 * Messages to a process or thread; those of one turn are sent together. `until`: a call that was sent ahead of others may only start
 * until this time on the monotonic clock of the machine.
 */
export type HostCommand =
  | { run: number; call: unknown; until?: number }
  | { stop: number; reason: SentError }
  | { answer: unknown }
  | { end: true };

/** Messages from a process or thread. `at`: when the call ended. `returned`: calls that have not started and never will. */
export type HostReply =
  | { ready: true }
  | { unloadable: SentError }
  | { note: unknown; of: number }
  | { end: number; outcome: unknown; at: number }
  | { returned: number[] };

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
