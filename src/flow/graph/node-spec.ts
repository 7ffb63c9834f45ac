import { resolveBackoff } from '../../engine/options.js';
import { DEFAULT_BACKOFF } from '../../job/backoff.js';
import type { Backoff, NeedPolicy } from '../../job/job.js';

/** What a node does when its time has come. */
export type Work =
  /** A text goes to `sh -c`, a list is a program with its arguments. */
  | { kind: 'shell'; run: string | readonly string[] }
  /** `written` is what the user wrote, where `call` only leads there. */
  | { kind: 'function'; call: NodeFunction; written?: unknown }
  /** A job for whoever works that queue, in any language. */
  | { kind: 'queue'; queue: string; payload: unknown };

/** Upstream results by id; where the node maps, the item stands in `context.item`. */
export type NodeFunction = (needs: never, context: never) => unknown;

/** What a function gets beside the results of its upstream nodes. */
export interface NodeContext {
  id: string;
  /** 1 for the first. */
  attempt: number;
  /** Aborted at the timeout and when the flow is stopped. */
  signal: AbortSignal;
  /** Where the node maps over a list: the item and its place. */
  item?: unknown;
  index?: number;
}

/** How a node is treated; one frozen object serves all nodes that ask for nothing. */
export interface NodeOptions {
  /** Attempts after the first one. */
  retries: number;
  backoff: Backoff;
  /** Milliseconds an attempt may take; 0 means no limit. */
  timeout: number;
  priority: number;
  /** Slots it takes. */
  cpu: number;
  /** Other tokens it takes while it runs, by name. */
  tokens?: Readonly<Record<string, number>>;
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  /** Files whose content decides whether the node has to run again. */
  inputs?: readonly string[];
  /** Files it makes; one that is missing makes it run again. */
  outputs?: readonly string[];
  cache: boolean;
}

export interface NodeSpec {
  work: Work;
  options: NodeOptions;
  /** Runs once for every item of this upstream's result, which is a list. */
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

/** How nodes end, and on the way: numbers, because there may be millions. */
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

/** One end of a node, as it is written down and told. */
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
  /** Which slot it ran in, and where. */
  slot?: number;
  worker?: string;
  cached?: boolean;
}

export type { NeedPolicy };
export { resolveBackoff };
