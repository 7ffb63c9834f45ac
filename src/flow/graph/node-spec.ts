import { resolveBackoff } from '../../engine/input/options.js';
import { DEFAULT_BACKOFF } from '../../job/backoff.js';
import type { Backoff, NeedPolicy } from '../../job/job.js';

/** What a node runs. */
export type Work =
  /** A string is passed to `sh -c`; a list is a program with its arguments. */
  | { kind: 'shell'; run: string | readonly string[] }
  /** `written` is the user's own function when `call` only wraps it. */
  | { kind: 'function'; call: NodeFunction; written?: unknown }
  /** A job for the workers of that queue, in any language. */
  | { kind: 'queue'; queue: string; payload: unknown };

/** Receives the upstream results by id; in a map node, `context.item` holds the item. */
export type NodeFunction = (needs: never, context: never) => unknown;

/** What a function receives besides the results of its upstream nodes. */
export interface NodeContext {
  id: string;
  /** 1 for the first. */
  attempt: number;
  /** Aborted at the timeout and when the flow is stopped. */
  signal: AbortSignal;
  /** In a map node: the item and its index. */
  item?: unknown;
  index?: number;
}

/** The options of a node; all nodes with default options share one frozen object. */
export interface NodeOptions {
  /** Attempts after the first one. */
  retries: number;
  backoff: Backoff;
  /** Milliseconds an attempt may take; 0 means no limit. */
  timeout: number;
  priority: number;
  /** Number of slots it takes. */
  cpu: number;
  /** Other tokens it holds while it runs, by name. */
  tokens?: Readonly<Record<string, number>>;
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  /** Files whose contents decide whether the node must run again. */
  inputs?: readonly string[];
  /** Files it creates; if one is missing, the node runs again. */
  outputs?: readonly string[];
  cache: boolean;
}

export interface NodeSpec {
  work: Work;
  options: NodeOptions;
  /** Runs once for every item of this upstream node's result, which must be a list. */
  map?: string;
}

export const DEFAULT_OPTIONS: NodeOptions = Object.freeze({
  retries: 0,
  backoff: Object.freeze({ ...DEFAULT_BACKOFF, delay: 500, cap: 60_000 }),
  timeout: 0,
  priority: 0,
  cpu: 1,
  cache: false,
});

/** States of a node: numbers, because there may be millions of nodes. */
export const BLOCKED = 0;
export const READY = 1;
export const RUNNING = 2;
export const DONE = 3;
export const FAILED = 4;
export const SKIPPED = 5;
export const CANCELLED = 6;
export const STATE_NAMES = ['blocked', 'ready', 'running', 'done', 'failed', 'skipped', 'cancelled'] as const;
export type StateName = (typeof STATE_NAMES)[number];

export const isEnd = (state: number): boolean => state >= DONE;

/** The completion of a node, as it is recorded and reported. */
export interface NodeEnd {
  id: string;
  state: 'done' | 'failed';
  attempts: number;
  /** Milliseconds since 1970. */
  start: number;
  seconds: number;
  exit: number;
  value?: unknown;
  error?: string;
  /** The last lines of the output of a failed attempt: of stderr, or of stdout when stderr is empty. */
  output?: string;
  /** The slot it ran in, and the worker. */
  slot?: number;
  worker?: string;
  cached?: boolean;
}

export type { NeedPolicy };
export { resolveBackoff };
