/** An item whose lock we hold: the token proves that the lock is still ours. */
export interface LockedItem {
  readonly item: Buffer;
  readonly token: Buffer;
}

/** The result of one search for a free item. */
export interface Look {
  /** The ring's length at the time of the search. */
  readonly length: number;
  /** The index where the next search continues; after a find, how many items were rotated. */
  readonly next: number;
  readonly item: Buffer | undefined;
  /** When the lock was requested, on the monotonic clock, if that was later than the call: connecting comes first. */
  readonly asked?: number;
}

export type LockState = 'kept' | 'gone' | 'foreign';

/**
 * The operations a ring needs from its store. `within` is the timeout of a call in milliseconds; a late answer is an
 * error.
 */
export interface RingStore {
  /** Examines up to `count` items from index `from`, locks the first free one and rotates the ring just past it. */
  take(token: Buffer, from: number, count: number, within: number): Promise<Look>;
  /** Extends the locks that are still ours and returns the state of each. */
  refresh(held: readonly LockedItem[], within: number): Promise<LockState[]>;
  /** Takes an expired lock again, with its old token; false when another process was faster. */
  retake(held: LockedItem, within: number): Promise<boolean>;
  /** Releases the lock, or keeps it for `rest` more milliseconds; false when the lock was no longer ours. */
  release(held: LockedItem, rest: number, within: number): Promise<boolean>;
  add(items: readonly Buffer[], within: number): Promise<number>;
  /** Removes every copy of the item and returns how many there were. */
  remove(item: Buffer, within: number): Promise<number>;
  items(within: number): Promise<Buffer[]>;
  close(): void;
}

/** The options of a store. */
export interface RingLayout {
  readonly prefix: string;
  readonly lockName: string;
  readonly expiryMs: number;
}
