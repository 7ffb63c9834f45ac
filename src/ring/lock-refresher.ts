import { now, Pause } from '../process/clock.js';
import type { LockedItem, LockState, RingStore } from './store.js';

/** Why a lock is lost: another process holds it, or the store did not answer until the lease had almost expired. */
export type Loss = 'foreign' | 'silent';

/** A lock that the refresher keeps extending. */
export interface HeldLock extends LockedItem {
  /** Our own deadline, on the monotonic clock: no other process can get the lock before it. */
  until: number;
  /** Set while the lock is lost. */
  loss: Loss | undefined;
}

/** The time on the monotonic clock by which all work on the item must have stopped. */
export function deadBy(lease: HeldLock, expiryMs: number): number {
  return lease.until - expiryMs / 20;
}

export interface LockRefresherEvents {
  /** The lock was gone and we have taken it again, with the same token. */
  retaken(lease: HeldLock): void;
  lost(lease: HeldLock, loss: Loss): void;
}

/** Delay before a retry after a failure, in milliseconds. */
const RETRY = 100;
/** A timer that is late by more than this means that this process was stopped, not that the store did not answer. */
const PAUSED = 250;

/**
 * Extends all held locks in one call, three times per expiry. A lease is given up as `silent` a fifth of the expiry
 * before its end, and its work must have stopped a twentieth before it: after the end, any process may hold the item.
 */
export class LockRefresher {
  private readonly leases = new Set<HeldLock>();
  private readonly pause = new Pause();
  private running = false;
  private excused = false;
  private asking: Promise<number> | undefined;

  constructor(
    private readonly store: RingStore,
    private readonly expiryMs: number,
    private readonly events: LockRefresherEvents,
  ) {}

  /** `asked` is the time just before the lock was requested: on the server, the lock cannot have started earlier. */
  hold(held: LockedItem, asked: number): HeldLock {
    const lease: HeldLock = { ...held, until: asked + this.expiryMs, loss: undefined };
    this.leases.add(lease);
    if (!this.running) void this.run();
    return lease;
  }

  /** Stops extending the lease; call it before the lock is released. */
  drop(lease: HeldLock): void {
    this.leases.delete(lease);
    if (this.leases.size === 0) this.pause.wake();
  }

  /** Checks all locks now, for example after the whole process was stopped; resolves when the store has answered. */
  async check(): Promise<void> {
    if (this.leases.size > 0) await this.round();
  }

  private async run(): Promise<void> {
    this.running = true;
    let delay = this.expiryMs / 3;
    while (this.leases.size > 0) {
      await this.pause.sleep(delay);
      if (this.leases.size > 0) delay = await this.round();
    }
    this.running = false;
  }

  /**
   * Extends all leases in one call; returns the delay until the next one. Never two at once: they would see each
   * other's locks.
   */
  private round(): Promise<number> {
    this.asking ??= this.ask().finally(() => {
      this.asking = undefined;
    });
    return this.asking;
  }

  private async ask(): Promise<number> {
    const watched = [...this.leases];
    const asked = now();
    const within = this.patience(watched, asked);
    try {
      const states = await this.store.refresh(watched, within);
      for (const [i, lease] of watched.entries()) await this.apply(lease, states[i]!, asked, within);
      this.excused = false;
      return this.expiryMs / 3;
    } catch {
      return this.judge(watched, now() - asked > within + PAUSED);
    }
  }

  private async apply(lease: HeldLock, state: LockState, asked: number, within: number): Promise<void> {
    if (!this.leases.has(lease)) return;
    if (state === 'kept') this.keep(lease, asked);
    else if (state === 'gone' && lease.loss !== 'foreign') await this.retake(lease, within);
    else if (state === 'foreign') this.lose(lease, 'foreign');
  }

  private async retake(lease: HeldLock, within: number): Promise<void> {
    const asked = now();
    if (!(await this.store.retake(lease, within))) return this.lose(lease, 'foreign');
    if (!this.leases.has(lease)) {
      // Dropped while the call was in progress: the release found nothing to delete, so we must release the lock here.
      await this.store.release(lease, 0, within);
      return;
    }
    this.keep(lease, asked);
    this.events.retaken(lease);
  }

  private keep(lease: HeldLock, asked: number): void {
    lease.until = asked + this.expiryMs;
    lease.loss = undefined;
  }

  private lose(lease: HeldLock, loss: Loss): void {
    if (lease.loss || !this.leases.has(lease)) return;
    lease.loss = loss;
    this.events.lost(lease, loss);
  }

  /** The store did not answer. If this process itself was stopped, it gets one more try before it blames the store. */
  private judge(watched: readonly HeldLock[], paused: boolean): number {
    if (paused && !this.excused) {
      this.excused = true;
      return 0;
    }
    for (const lease of watched) if (now() >= this.lastMoment(lease)) this.lose(lease, 'silent');
    return RETRY;
  }

  private patience(watched: readonly HeldLock[], at: number): number {
    const soonest = Math.min(...watched.map((lease) => this.lastMoment(lease)));
    return Math.min(this.expiryMs / 3, Math.max(this.expiryMs / 10, soonest - at));
  }

  private lastMoment(lease: HeldLock): number {
    return lease.until - this.expiryMs / 5;
  }
}
