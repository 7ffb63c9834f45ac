import { CroreError } from '../../errors.js';
import { type Duration, milliseconds } from '../../job/duration.js';
import type { Breaker, QueueSettings } from '../../store/store.js';
import { checkInteger, checkOptions, describe } from '../input/check.js';

/** Stops giving out work after failures in a row. */
export interface BreakerOptions {
  /** So many failed attempts in a row, of all workers together, open the breaker. */
  failures: number;
  /** How long nothing starts then, before one job may try. */
  pause: Duration;
}

/** The breaker of a queue as it is now. */
export interface BreakerView {
  failures: number;
  /** Milliseconds. */
  pause: number;
  /** Failed attempts in a row. */
  failed: number;
  isOpen: boolean;
  /** While it is open: when it lets the next job through. */
  until?: Date;
}

export function resolveBreaker(options: BreakerOptions | null): Breaker | null {
  if (options === null) return null;
  if (typeof options !== 'object')
    throw new CroreError('BAD_OPTION', `breaker must be an object or null, not ${describe(options)}`);
  checkOptions(options, ['failures', 'pause'], 'breaker');
  const failures = checkInteger(options.failures, 'breaker.failures', 1, 1_000_000);
  const pause = milliseconds(options.pause, 'breaker.pause');
  if (pause < 1) throw new CroreError('BAD_OPTION', 'breaker.pause must be at least a millisecond');
  return { failures, pause };
}

export function breakerView({ breaker, breakerState }: QueueSettings): BreakerView | undefined {
  if (!breaker) return undefined;
  const { failed = 0, until } = breakerState ?? {};
  const isOpen = until !== undefined;
  return { ...breaker, failed, isOpen, ...(isOpen ? { until: new Date(until) } : {}) };
}
