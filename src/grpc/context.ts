import type { Engine } from '../engine/engine.js';
import type { Backoff } from '../job/job.js';
import type { Heartbeat } from '../worker/heartbeat/heartbeat.js';
import type { ClaimsByQueue } from './claims/queue-claims.js';

/** The logger interface the server needs; pino has it. */
export interface Log {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
  /** News about jobs: failed attempts and dead jobs. */
  job?(fields: object, text: string): void;
}

/** Limits on what a caller may request. */
export interface ServerLimits {
  /** Maximum bytes of one message. */
  message: number;
  /** Maximum bytes of a call's metadata. */
  metadata: number;
  /** Maximum open calls on one connection. */
  streams: number;
  connections: number;
  /** Maximum bytes of unfinished messages, across all connections. */
  buffered: number;
  /** Maximum job names in one call. */
  names: number;
}

/** Defaults for jobs of the lakh protocol. */
export interface LakhPolicy {
  maxRetry: number;
  backoff: Backoff;
}

/** What all interfaces of a server share. */
export interface ServerContext {
  engine: Engine;
  heartbeat: Heartbeat;
  claims: ClaimsByQueue;
  log: Log;
  limits: ServerLimits;
  lakh: LakhPolicy;
  /** Lease of the sessions of workers and of the server. */
  lease: number;
  heartbeatEvery: number;
  /** How long jobs may wait for a worker to read them before they go to other workers. */
  stall: number;
  version: string;
  /** Sweeps a queue from now on. */
  keepSwept: (queue: string) => void;
}
