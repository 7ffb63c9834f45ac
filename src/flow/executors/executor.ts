import type { NodeSpec } from '../graph/node-spec.js';

/** One attempt at a node, or at one part of a map node. */
export interface NodeTask {
  readonly node: number;
  readonly id: string;
  readonly spec: NodeSpec;
  readonly attempt: number;
  /** Results of upstream nodes by id; absent when there are none. */
  readonly needs: Record<string, unknown> | undefined;
  /** Index of the part of a map node. */
  readonly part?: number;
  readonly item?: unknown;
  /** Whether it runs in one of the runner's own slots. */
  readonly here: boolean;
  startedAt: number;
  /** Set by the executor: stops the attempt early. The executor still returns an outcome, within a bounded time. */
  stop?: (why: string) => void;
  /** Why it was stopped. */
  stopped?: string;
  timer?: NodeJS.Timeout;
}

/** How an attempt ended. Any exit code other than 0 is a failure. */
export interface NodeOutcome {
  exit: number;
  value?: unknown;
  error?: string;
  /** Its output, truncated, for watchers. */
  stdout?: string;
  stderr?: string;
  /** The end of output that has been printed already. */
  printed?: string;
  /** Where it ran. */
  worker?: string;
  slot?: number;
  /** The measured run time, if it ran remotely. */
  seconds?: number;
  /** Its worker crashed: not charged as an attempt, up to a few times. */
  crashed?: boolean;
  /** No worker took it: it is queued again, uncharged. */
  returned?: boolean;
  /** Retrying is useless. */
  fatal?: boolean;
}

/** Stops an attempt early; its outcome follows soon after. */
export function stopTask(task: NodeTask, why: string): void {
  if (task.stopped !== undefined) return;
  task.stopped = why;
  task.stop?.(why);
}

/** Starts the timeout of an attempt that has one. */
export function limitTime(task: NodeTask): void {
  const { timeout } = task.spec.options;
  if (timeout === 0) return;
  task.timer = setTimeout(() => stopTask(task, `it took longer than ${timeout / 1_000} s`), timeout);
}

/** Runs tasks of one kind; may return an outcome synchronously. */
export interface Executor {
  /** It starts the timeout itself, because an attempt may begin later than `run` is called. */
  readonly keepsTime?: boolean;
  run(task: NodeTask): NodeOutcome | Promise<NodeOutcome>;
  close(): Promise<void>;
}
