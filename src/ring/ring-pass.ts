import { now } from '../process/clock.js';
import { randomToken } from '../process/random.js';
import type { LockedItem, RingStore } from './store.js';

/** Items looked at per round trip: 10,000 locked ones cost three, and each holds the server up for 3 to 4 ms. */
const BATCH = 4000;

/** A lock just set, with the moment before it was asked for. */
export interface Found extends LockedItem {
  readonly asked: number;
}

/** One way around the ring: as many steps as it was long at the start, however many items are found on it. */
export class Pass {
  private left: number | undefined;
  private from = 0;

  constructor(
    private readonly store: RingStore,
    private readonly within: number,
    private readonly expiryMs: number,
  ) {}

  /** The next free item, locked; undefined when the way around is over. */
  async next(): Promise<Found | undefined> {
    while (this.left === undefined || this.left > 0) {
      const asked = now();
      const token = randomToken();
      const { length, next, item } = await this.store.take(
        token,
        this.from,
        Math.min(BATCH, this.left ?? BATCH),
        this.within,
      );
      this.left ??= length;
      this.left -= next - this.from;
      // A find rotates the ring up to itself, so the next look starts at the left again.
      this.from = item ? 0 : next;
      if (item && this.isFresh(asked)) return { item, token, asked };
      if (item) await this.store.release({ item, token }, 0, this.within);
      else if (this.from >= length) return undefined;
    }
    return undefined;
  }

  /** An answer that took too long leaves no time to refresh before the lock ends: that find is given back. */
  private isFresh(asked: number): boolean {
    return now() - asked < this.expiryMs / 3;
  }
}

/** The pause at an empty or fully locked ring: it grows, and it is jittered so that many wrappers do not ask in step. */
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
