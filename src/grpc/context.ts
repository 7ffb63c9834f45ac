import type { Engine } from '../engine/engine.js';
import type { Backoff } from '../job/job.js';
import type { Heartbeat } from '../worker/heartbeat.js';

/** What a logger has to offer; pino does. */
export interface Log {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

/** Bounds of what a caller may ask for. */
export interface ServerLimits {
  /** Bytes of one message. */
  message: number;
  /** Bytes of the metadata of a call. */
  metadata: number;
  /** Calls open at once on one connection. */
  streams: number;
  connections: number;
  /** Bytes of unfinished messages, of all connections together. */
  buffered: number;
  /** Job names of one call. */
  names: number;
}

/** What a job of the lakh protocol gets. */
export interface LakhPolicy {
  maxRetry: number;
  backoff: Backoff;
}

/** What all doors of a server share. */
export interface ServerContext {
  engine: Engine;
  heartbeat: Heartbeat;
  log: Log;
  limits: ServerLimits;
  lakh: LakhPolicy;
  /** Sessions of workers and relays. */
  lease: number;
  heartbeatEvery: number;
  /** How long jobs may wait for a worker to read them before they are given to others. */
  stall: number;
  version: string;
  /** Takes policy of a queue from now on. */
  keepSwept: (queue: string) => void;
}
