import { CroreError } from '../errors.js';
import { type Duration, milliseconds } from '../job/duration.js';
import type { Pace, Rate } from '../store/store.js';
import { checkInteger, checkOptions } from './check.js';

/** How many entries may run at once, and how many may start within a time. */
export interface PartOfPace {
  concurrency?: number;
  /** At most `count` starts within `per`, counted from the first of them. */
  rate?: { count: number; per: Duration };
}

export interface PaceOptions extends PartOfPace {
  /** The same for the jobs of each group (`group` of `add`). */
  group?: PartOfPace;
}

export function resolvePace(options: PaceOptions): Pace {
  checkOptions(options, ['concurrency', 'rate', 'group'], 'pace');
  const pace: Pace = part(options, 'pace');
  if (options.group === undefined) return pace;
  checkOptions(options.group, ['concurrency', 'rate'], 'pace.group');
  const group = part(options.group, 'pace.group');
  return Object.keys(group).length > 0 ? { ...pace, group } : pace;
}

function part({ concurrency, rate }: PartOfPace, what: string): { concurrency?: number; rate?: Rate } {
  const resolved: { concurrency?: number; rate?: Rate } = {};
  if (concurrency !== undefined) resolved.concurrency = checkInteger(concurrency, `${what}.concurrency`, 1, 1_000_000);
  if (rate === undefined) return resolved;
  checkOptions(rate, ['count', 'per'], `${what}.rate`);
  const per = milliseconds(rate.per, `${what}.rate.per`);
  if (per < 1) throw new CroreError('BAD_OPTION', `${what}.rate.per must be at least a millisecond`);
  return { ...resolved, rate: { count: checkInteger(rate.count, `${what}.rate.count`, 1, 1_000_000_000), per } };
}
