/** A timer cannot wait longer than this; a caller that would is not waited for at all. */
export const LONGEST_TIMEOUT = 2 ** 31 - 1;

const UNITS: Record<string, number> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** Milliseconds of `grpc-timeout`, which has a unit, or of `connect-timeout-ms`; NaN where there is none. */
export function timeoutOf(text: string | null | undefined): number {
  const match = /^(\d{1,10})([HMSmun]?)$/.exec(text ?? '');
  return match ? Number(match[1]) * UNITS[match[2] || 'm']! : Number.NaN;
}
