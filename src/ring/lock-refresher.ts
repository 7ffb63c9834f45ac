import { now, Pause } from '../process/clock.js';
import type { LockedItem, LockState, RingStore } from './store.js';

/** Why a lock is lost: somebody else holds it, or the store did not answer until our own time was nearly up. */
export type Loss = 'foreign' | 'silent';

/** A held item under the refresher's watch. */
export interface HeldLock extends LockedItem {
  /** Our own deadline, on the monotonic clock: before it nobody else can have got the lock. */
  until: number;
  /** Set while the lock is lost. */
  loss: Loss | undefined;
}

/** The moment on the monotonic clock by which nothing may work on the item any more. */
export function deadBy(lease: HeldLock, expiryMs: number): number {
  return lease.until - expiryMs / 20;
}

export interface LockRefresherEvents {
  /** The lock was gone and is ours again, with the same token. */
  retaken(lease: HeldLock): void;
  lost(lease: HeldLock, loss: Loss): void;
}

/** Attempts after a failure come this quickly, in milliseconds. */
const RETRY = 100;
/** A timer this much too late tells of a stopped process, not of a silent store. */
const PAUSED = 250;

/**
 * Extends all held locks, three times per expiry, in one call. A lease is given up as `silent` a fifth of the expiry before its
 * end, and its work must be dead a twentieth before it: after the end anybody may hold the item.
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

  /** `asked` is the time just before the lock was asked for: the server's clock cannot have started earlier. */
  hold(held: LockedItem, asked: number): HeldLock {
    const lease: HeldLock = { ...held, until: asked + this.expiryMs, loss: undefined };
    this.leases.add(lease);
    if (!this.running) void this.run();
    return lease;
  }

  /** From here on the lease is not extended any more; call it before the lock is released. */
  drop(lease: HeldLock): void {
    this.leases.delete(lease);
    if (this.leases.size === 0) this.pause.wake();
  }

  /** Looks at all locks now, as after a pause of the whole process; resolves when the answer is in. */
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

  /** One call for all leases; gives back when the next one is due. Never two at once: they would see each other's locks. */
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
      // Dropped while the answer was under way: the release found nothing to delete, so it is for us to do.
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

  /** No answer. A process that was itself stopped gets one more try before it blames the store. */
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
