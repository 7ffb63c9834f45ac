/** What the main thread and the heartbeat thread say to each other. */

/** A session to keep alive. */
export interface WatchedSession {
  queue: string;
  worker: string;
  lease: number;
  beat: number;
  hung: number;
}

/** What goes to the thread. */
export type HeartbeatCommand = { add: WatchedSession } | { remove: string } | { stop: true };
/** What comes back: a worker's name and what befell it. */
export type HeartbeatReply = { worker: string; news: 'lost' | 'late' | 'recovered' };

export interface HeartbeatSetup {
  url: string;
  timeout: number;
  /** Counts turns of the main loop. */
  loop: SharedArrayBuffer;
  /** Holds one of GATE. */
  gate: SharedArrayBuffer;
}

/** `open`: nobody has passed; `busy`: the thread uses its store; `shut`: it must not begin to, for it is being terminated. */
export const GATE = { open: 0, busy: 1, shut: 2 } as const;
