/** The longest delay a timer supports; a longer deadline is ignored. */
export const LONGEST_TIMEOUT = 2 ** 31 - 1;

const UNITS: Record<string, number> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** Parses milliseconds from `grpc-timeout`, which has a unit, or from `connect-timeout-ms`; NaN if there is none. */
export function timeoutOf(text: string | null | undefined): number {
  const match = /^(\d{1,10})([HMSmun]?)$/.exec(text ?? '');
  return match ? Number(match[1]) * UNITS[match[2] || 'm']! : Number.NaN;
}
