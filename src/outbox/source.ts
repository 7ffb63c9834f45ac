import type { Body, NewJob } from '../job/job.js';
import { decodeSpec } from '../job/spec.js';

/** Jobs of a queue that are sent together. */
export interface Batch {
  /** The name under which the store knows the outbox. */
  source: string;
  /** Where the store has to be for this batch to be the next one. */
  from: string;
  /** Where it is once the batch has arrived. */
  to: string;
  jobs: NewJob[];
}

/**
 * Not now: the application is inside a transaction on this connection, and the visible rows may never be committed; or
 * another connection has locked the file.
 */
export const OCCUPIED = Symbol('occupied');

type Maybe<T> = T | typeof OCCUPIED | Promise<T | typeof OCCUPIED>;

/** The outbox as a relay sees it. Several relays may use one at the same time, and each may die at any moment. */
export interface OutboxSource {
  /** The first queue after this name that has rows. */
  nextQueue(after: string): Maybe<string | undefined>;
  /** The next rows of a queue, limited in number and, after the first row, in bytes. */
  batch(queue: string, most: { rows: number; bytes: number }): Maybe<Batch | undefined>;
  /** The batch has arrived: its rows are deleted. Harmless if that is known already. */
  confirm(queue: string, batch: Batch): Maybe<undefined>;
  /**
   * The store was not at `batch.from`: it is at `theirs`. Usually another relay has sent more than was confirmed here. Otherwise the outbox or the
   * store has been restored to an earlier state: the outbox takes a new name, waiting rows are sent as if none had been sent, and the answer is true.
   */
  compare(queue: string, batch: Batch, theirs: string): Maybe<boolean>;
  /** Calls `notify` after commits; some may be missed. Returns a function that stops it. */
  watch(notify: () => void): () => void;
  translate(error: unknown): Error;
  close(): Promise<void>;
}

/** A row of an outbox. */
export interface OutgoingRow {
  id: string;
  payload: Body;
  priority: number;
  at: number | null;
  spec: string;
}

/** The job of a row that was written `waited` milliseconds ago. Its times were fixed then, no matter when it is sent. */
export function toJob({ id, payload, priority, at, spec: written }: OutgoingRow, waited: number): NewJob {
  const spec = decodeSpec(written);
  const passed = Math.max(0, waited);
  return {
    id,
    payload,
    priority,
    at: at ?? undefined,
    spec: spec.expires > 0 ? { ...spec, expires: Math.max(1, spec.expires - passed) } : spec,
  };
}
