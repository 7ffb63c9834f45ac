/** Messages between the main thread and the heartbeat thread. */

/** A session to keep alive. */
export interface WatchedSession {
  queue: string;
  worker: string;
  lease: number;
  heartbeatMs: number;
  hung: number;
  /** When its lease began, or shortly before, in milliseconds of `monotonicNow`. */
  since: number;
}

/** The same clock in every thread, unlike `performance.now`. */
export function monotonicNow(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

/** Messages to the thread. `renewed`: a heartbeat of the main loop, sent at `since`, got through. */
export type HeartbeatCommand =
  | { add: WatchedSession }
  | { renewed: string; since: number }
  | { remove: string }
  | { stop: true };
/** Messages from the thread: a worker's name and its new status. `taken`: the thread's first heartbeat got through. */
export type HeartbeatReply = { worker: string; change: 'taken' | 'lost' | 'late' | 'recovered' };

export interface HeartbeatSetup {
  url: string;
  timeout: number;
  /** Counts turns of the main loop. */
  loop: SharedArrayBuffer;
  /** Holds one of the values of GATE. */
  gate: SharedArrayBuffer;
}

/**
 * `open`: not decided yet; `busy`: the thread uses its store; `shut`: it must not start using it, because it is being terminated.
 */
export const GATE = { open: 0, busy: 1, shut: 2 } as const;
