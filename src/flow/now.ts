/** Milliseconds since 1970, finer than the clock on the wall. */
export const now = (): number => performance.timeOrigin + performance.now();
