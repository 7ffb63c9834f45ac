import type { Child, ChildExit } from '../process/child.js';
import { now } from '../process/clock.js';
import { deadBy, type HeldLock, type Loss } from './lock-refresher.js';

/** A child process that works on one item: when to stop it, and how it ended. */
export class RunningChild {
  /** Why we stopped it ourselves, if we did. */
  ending: 'lost' | 'timeout' | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    readonly lease: HeldLock,
    readonly child: Child,
    /** The time just before the child was started, on the monotonic clock. */
    readonly started: number,
    private readonly graceMs: number,
  ) {}

  limit(ms: number, whenLate: () => void): void {
    if (ms === 0) return;
    this.timer = setTimeout(() => {
      whenLate();
      this.end('timeout', this.graceMs);
    }, ms);
  }

  /** If the store does not answer, the child must be gone before our deadline; otherwise it gets its full grace period. */
  lose(loss: Loss, expiryMs: number): void {
    const left = Math.max(0, deadBy(this.lease, expiryMs) - now());
    this.end('lost', loss === 'silent' ? Math.min(left, this.graceMs) : this.graceMs);
  }

  async outcome(): Promise<ChildExit> {
    const outcome = await this.child.ended;
    clearTimeout(this.timer);
    return outcome;
  }

  private end(why: 'lost' | 'timeout', graceMs: number): void {
    if (this.ending === 'lost') return;
    this.ending = why;
    this.child.end(graceMs);
  }
}
