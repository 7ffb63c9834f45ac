/** An item whose lock we set: the token proves that it is still ours. */
export interface LockedItem {
  readonly item: Buffer;
  readonly token: Buffer;
}

/** What one look along the ring brought. */
export interface Look {
  /** The ring's length when we looked. */
  readonly length: number;
  /** Where the next look goes on; after a find, how many items were rotated. */
  readonly next: number;
  readonly item: Buffer | undefined;
}

export type LockState = 'kept' | 'gone' | 'foreign';

/** The few verbs a ring needs of its refresher. `within` bounds a call in milliseconds; a late answer is an error. */
export interface RingStore {
  /** Looks at up to `count` items from index `from`, locks the first free one and rotates the ring just past it. */
  take(token: Buffer, from: number, count: number, within: number): Promise<Look>;
  /** Extends the locks that are still ours and says what became of each. */
  refresh(held: readonly LockedItem[], within: number): Promise<LockState[]>;
  /** Sets a lock that is gone again, with its old token; false when somebody else was faster. */
  retake(held: LockedItem, within: number): Promise<boolean>;
  /** Frees the item, or leaves it locked for `rest` milliseconds more; false when the lock was not ours any longer. */
  release(held: LockedItem, rest: number, within: number): Promise<boolean>;
  add(items: readonly Buffer[], within: number): Promise<number>;
  /** Removes every copy of the item and says how many there were. */
  remove(item: Buffer, within: number): Promise<number>;
  items(within: number): Promise<Buffer[]>;
  close(): void;
}

/** What a store is opened with. */
export interface RingLayout {
  readonly prefix: string;
  readonly lockName: string;
  readonly expiryMs: number;
}
