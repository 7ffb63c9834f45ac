import { CroreError } from '../../errors.js';
import { type Duration, milliseconds } from '../../job/duration.js';
import { shortDuration } from '../../job/short-duration.js';
import type { GroupLimits, QueueLimits, Rate } from '../../store/store.js';
import { checkInteger, checkOptions } from './check.js';

/** Limits how many entries run at once, and how many start within a period. */
export interface LimitOptions {
  concurrency?: number;
  /** At most `count` starts within `per`, measured from the first of them. */
  rate?: { count: number; per: Duration };
}

export interface QueueLimitOptions extends LimitOptions {
  /** The same limits for the jobs of each group (`group` of `add`). */
  group?: GroupLimitOptions;
}

export interface GroupLimitOptions extends LimitOptions {
  /**
   * The next job of a group starts when the one before has ended for good: done, dead or cancelled. While that one waits for its retry,
   * the group waits. One job at a time, so there is no `concurrency`.
   */
  ordered?: boolean;
}

export function resolveLimits(options: QueueLimitOptions): QueueLimits {
  checkOptions(options, ['concurrency', 'rate', 'group'], 'limits');
  const limits: QueueLimits = part(options, 'limits');
  if (options.group === undefined) return limits;
  const group = groupPart(options.group);
  return Object.keys(group).length > 0 ? { ...limits, group } : limits;
}

function groupPart(options: GroupLimitOptions): GroupLimits {
  checkOptions(options, ['concurrency', 'rate', 'ordered'], 'limits.group');
  const { ordered, concurrency } = options;
  if (ordered !== undefined && typeof ordered !== 'boolean')
    throw new CroreError('BAD_OPTION', 'limits.group.ordered must be true or false');
  if (ordered && concurrency !== undefined)
    throw new CroreError('BAD_OPTION', 'limits.group: ordered groups run one job at a time and have no concurrency');
  return { ...part(options, 'limits.group'), ...(ordered ? { ordered } : {}) };
}

function part({ concurrency, rate }: LimitOptions, what: string): { concurrency?: number; rate?: Rate } {
  const resolved: { concurrency?: number; rate?: Rate } = {};
  if (concurrency !== undefined) resolved.concurrency = checkInteger(concurrency, `${what}.concurrency`, 1, 1_000_000);
  if (rate === undefined) return resolved;
  checkOptions(rate, ['count', 'per'], `${what}.rate`);
  const per = milliseconds(rate.per, `${what}.rate.per`);
  if (per < 1) throw new CroreError('BAD_OPTION', `${what}.rate.per must be at least a millisecond`);
  return { ...resolved, rate: { count: checkInteger(rate.count, `${what}.rate.count`, 1, 1_000_000_000), per } };
}

/** In words: `100 per 10m`. */
export function rateText({ count, per }: Rate): string {
  return `${count} per ${shortDuration(per)}`;
}
