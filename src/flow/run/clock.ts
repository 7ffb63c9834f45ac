/**
 * Monotonic milliseconds. Not `performance.now()`: the first access to `performance` loads it, which takes a
 * millisecond.
 */
export const uptime = (): number => process.uptime() * 1_000;

const origin = Date.now() - uptime();

/** Milliseconds since 1970, with a finer resolution than `Date.now()`. */
export const now = (): number => origin + uptime();
