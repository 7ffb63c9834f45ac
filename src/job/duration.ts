import { CroreError } from '../errors.js';

/** Milliseconds, or a string such as `250ms`, `10s`, `5m`, `2h`, `1d`. */
export type Duration = number | string;

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const LONGEST = 100 * 365 * 86_400_000;

/** Converts a duration to milliseconds; `what` is the option's name for the error. */
export function milliseconds(duration: Duration, what: string): number {
  const value = typeof duration === 'number' ? duration : parse(duration);
  if (!Number.isFinite(value) || value < 0 || value > LONGEST) throw bad(duration, what);
  return Math.round(value);
}

function parse(text: unknown): number {
  if (typeof text !== 'string') return Number.NaN;
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/.exec(text.trim());
  return match ? Number(match[1]) * UNITS[match[2]!]! : Number.NaN;
}

function bad(duration: unknown, what: string): CroreError {
  // An object or function may have no text at all.
  const plain = duration === null || !/^(object|function)$/.test(typeof duration);
  const shown =
    typeof duration === 'string' ? `'${duration}'` : plain ? String(duration) : `a value of type ${typeof duration}`;
  return new CroreError(
    'BAD_DURATION',
    `${what}: ${shown} is not a duration: use milliseconds or a string such as '10s' or '5m'`,
  );
}
