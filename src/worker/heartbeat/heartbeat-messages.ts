/** Messages between the main thread and the heartbeat thread. */

/** A session to keep alive. */
export interface WatchedSession {
  queue: string;
  worker: string;
  lease: number;
  heartbeatMs: number;
  hung: number;
}

/** Messages to the thread. */
export type HeartbeatCommand = { add: WatchedSession } | { remove: string } | { stop: true };
/** Messages from the thread: a worker's name and its new status. */
export type HeartbeatReply = { worker: string; change: 'lost' | 'late' | 'recovered' };

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
