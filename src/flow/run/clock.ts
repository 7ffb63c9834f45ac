/** Milliseconds that only go forward. Not `performance.now()`: whoever touches `performance` loads it, for a millisecond. */
export const uptime = (): number => process.uptime() * 1_000;

const origin = Date.now() - uptime();

/** Milliseconds since 1970, finer than the clock on the wall. */
export const now = (): number => origin + uptime();
