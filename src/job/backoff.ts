import type { Backoff } from './job.js';

export const DEFAULT_BACKOFF: Backoff = Object.freeze({
  kind: 'exponential',
  delay: 1_000,
  factor: 2,
  cap: 3_600_000,
  jitter: 0.2,
});

/** Maximum delay of any backoff: thirty days. */
const LONGEST = 30 * 86_400_000;

/**
 * Milliseconds to wait after failure number `count` (1 for the first). `random` yields [0, 1).
 * The quartic curve is `base + count^4 + rand(jitter) * (count + 1)`, its terms in seconds.
 */
export function backoffDelay(backoff: Backoff, count: number, random: () => number): number {
  switch (backoff.kind) {
    case 'fixed':
      return clamp(backoff.delay, LONGEST);
    case 'exponential': {
      const full = Math.min(backoff.delay * backoff.factor ** (count - 1), backoff.cap);
      return clamp(full * (1 - backoff.jitter * random()), backoff.cap);
    }
    case 'quartic': {
      const spread = Math.floor(random() * (backoff.jitter / 1000)) * (count + 1);
      return clamp(backoff.base + (count ** 4 + spread) * 1000, backoff.cap);
    }
  }
}

function clamp(delay: number, cap: number): number {
  return Math.max(0, Math.min(Math.round(delay), cap, LONGEST));
}
