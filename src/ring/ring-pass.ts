import { now } from '../process/clock.js';
import { randomToken } from '../process/random.js';
import type { LockedItem, RingStore } from './store.js';

/** Items examined per round trip: 10,000 locked ones take three, and each blocks the server for 3 to 4 ms. */
const BATCH = 4000;

/** An item just locked, with the time just before the lock was requested. */
export interface Found extends LockedItem {
  readonly asked: number;
}

/** One pass around the ring: as many steps as it had items at the start, however many free ones are found. */
export class Pass {
  private left: number | undefined;
  private from = 0;

  constructor(
    private readonly store: RingStore,
    private readonly within: number,
    private readonly expiryMs: number,
  ) {}

  /** The next free item, locked; undefined when the pass is complete. */
  async next(): Promise<Found | undefined> {
    while (this.left === undefined || this.left > 0) {
      const called = now();
      const token = randomToken();
      const count = Math.min(BATCH, this.left ?? BATCH);
      const { length, next, item, asked = called } = await this.store.take(token, this.from, count, this.within);
      this.left ??= length;
      this.left -= next - this.from;
      // A find rotates the ring up to that item, so the next search starts at the left again.
      this.from = item ? 0 : next;
      if (item && this.isFresh(asked)) return { item, token, asked };
      if (item) await this.store.release({ item, token }, 0, this.within);
      else if (this.from >= length) return undefined;
    }
    return undefined;
  }

  /** A late answer leaves no time to refresh the lock before it expires: that item is released. */
  private isFresh(asked: number): boolean {
    return now() - asked < this.expiryMs / 3;
  }
}

/** The delay after an empty or fully locked ring: it grows, with jitter so that many wrappers do not poll in step. */
export class Idle {
  private ms = 0;

  constructor(private readonly most: number) {}

  next(): number {
    this.ms = Math.min(this.most, this.ms === 0 ? 20 : this.ms * 2);
    return this.ms * (0.5 + Math.random() * 0.4);
  }

  reset(): void {
    this.ms = 0;
  }
}

export function longestPause(expiryMs: number): number {
  return Math.min(1000, expiryMs / 2);
}
