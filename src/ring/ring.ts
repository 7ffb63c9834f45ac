import { CroreError } from '../errors.js';
import { Pause } from '../process/clock.js';
import { type HeldLock, LockRefresher, type Loss } from './lock-refresher.js';
import { openRingStore } from './open.js';
import { type Found, Idle, longestPause, Pass } from './ring-pass.js';
import type { RingStore } from './store.js';
import { parseUrl } from './url.js';

export interface RingOptions {
  /** Prefix of all key names; a `:` is appended if it is missing. Default: none. */
  readonly prefix?: string;
  /** Locks are named `<prefix:><lockName>:<item>`. Default: `lock`. */
  readonly lockName?: string;
  /** Seconds after which a lock expires unless it is refreshed, at least 1. Default: 5. */
  readonly expiry?: number;
  /** Seconds an item stays locked after it was processed. Default: 0. */
  readonly rest?: number;
  /** Timeout of every call to the store, in milliseconds. Default: 5000. */
  readonly patience?: number;
}

/** An item whose lock is held. */
export interface RingItem {
  readonly bytes: Buffer;
  /** The item as text; bytes that are not UTF-8 are replaced. */
  readonly text: string;
  /** Aborted when the lock is lost: another process works on the item, or may soon. */
  readonly signal: AbortSignal;
  /** Releases the lock. Not needed inside `for await`. */
  release(): Promise<void>;
  toString(): string;
}

/** Opens a ring: `redis://`, `rediss://`, `unix://`, `redis+sentinel://`, `redis+cluster://`, `postgres://` or `sqlite:FILE`. */
export async function openRing(url = 'redis://localhost:6379', options: RingOptions = {}): Promise<Ring> {
  const { prefix = '', lockName = 'lock', expiry = 5, rest = 0, patience = 5000 } = options;
  if (!(expiry >= 1)) throw new CroreError('BAD_OPTION', `expiry ${expiry}: must be at least 1 second`);
  if (!(rest >= 0)) throw new CroreError('BAD_OPTION', `rest ${rest}: must not be negative`);
  const expiryMs = expiry * 1000;
  const store = await openRingStore(parseUrl(url), { prefix, lockName, expiryMs });
  return new Ring(store, expiryMs, rest * 1000, patience);
}

/** Iterates forever: `for await (const item of ring)`. The lock is held while the loop body runs. */
export class Ring implements AsyncIterable<RingItem> {
  private readonly refresher: LockRefresher;
  private readonly aborts = new Map<HeldLock, AbortController>();
  private readonly sleepers = new Set<Pause>();
  private closed = false;

  /** @internal */
  constructor(
    private readonly store: RingStore,
    private readonly expiryMs: number,
    private readonly restMs: number,
    private readonly patience: number,
  ) {
    const lost = (lease: HeldLock, loss: Loss): void => this.aborts.get(lease)?.abort(lostError(lease, loss));
    this.refresher = new LockRefresher(store, expiryMs, { retaken: () => {}, lost });
  }

  /** Appends items at the right end; resolves with the ring's new length. */
  add(...items: (string | Uint8Array)[]): Promise<number> {
    return this.store.add(items.map(bytesOf), this.patience);
  }

  /** Removes every copy of an item; resolves with how many there were. */
  remove(item: string | Uint8Array): Promise<number> {
    return this.store.remove(bytesOf(item), this.patience);
  }

  /** All items, from the left. */
  items(): Promise<Buffer[]> {
    return this.store.items(this.patience);
  }

  /** The next free item, or undefined after one pass around the ring. Release it when done. */
  async take(): Promise<RingItem | undefined> {
    return this.next(new Pass(this.store, this.patience, this.expiryMs));
  }

  /** Iterates once around the ring. */
  async *pass(): AsyncGenerator<RingItem, void, void> {
    const pass = new Pass(this.store, this.patience, this.expiryMs);
    for (;;) {
      const item = await this.next(pass);
      if (!item) return;
      yield* heldWhile(item);
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RingItem, void, void> {
    const idle = new Idle(longestPause(this.expiryMs));
    while (!this.closed) {
      const item = await this.take();
      if (!item) {
        await this.sleep(idle.next());
        continue;
      }
      idle.reset();
      yield* heldWhile(item);
    }
  }

  /** Releases all held locks, ends all loops at their next iteration and closes the connection. */
  async close(): Promise<void> {
    this.closed = true;
    for (const sleeper of this.sleepers) sleeper.wake();
    await Promise.allSettled([...this.aborts.keys()].map((lease) => this.release(lease)));
    this.store.close();
  }

  private async next(pass: Pass): Promise<RingItem | undefined> {
    if (this.closed) return undefined;
    let found: Found | undefined;
    try {
      found = await pass.next();
    } catch (error) {
      // The ring was closed during the call: that ends the loop and is not a failure.
      if (this.closed) return undefined;
      throw error;
    }
    return found && this.hold(found);
  }

  private hold(found: Found): RingItem {
    const lease = this.refresher.hold(found, found.asked);
    const abort = new AbortController();
    this.aborts.set(lease, abort);
    const text = found.item.toString();
    const release = (): Promise<void> => this.release(lease);
    return { bytes: found.item, text, signal: abort.signal, release, toString: () => text };
  }

  private async release(lease: HeldLock): Promise<void> {
    if (!this.aborts.has(lease)) return;
    this.refresher.drop(lease);
    try {
      await this.store.release(lease, this.restMs, this.patience);
    } finally {
      this.aborts.delete(lease);
    }
  }

  private async sleep(ms: number): Promise<void> {
    const pause = new Pause();
    this.sleepers.add(pause);
    await pause.sleep(ms);
    this.sleepers.delete(pause);
  }
}

async function* heldWhile(item: RingItem): AsyncGenerator<RingItem, void, void> {
  try {
    yield item;
  } finally {
    await item.release();
  }
}

function bytesOf(item: string | Uint8Array): Buffer {
  return typeof item === 'string' ? Buffer.from(item, 'utf8') : Buffer.from(item);
}

function lostError(lease: HeldLock, loss: Loss): CroreError {
  const why = loss === 'foreign' ? 'another worker holds it' : 'it could not be refreshed in time';
  return new CroreError('LEASE_LOST', `the lock of ${lease.item.toString()} was lost: ${why}`);
}
