import type { NodeSpec } from '../graph/node-spec.js';

/** One attempt at a node, or at one part of a node that maps. */
export interface NodeTask {
  readonly node: number;
  readonly id: string;
  readonly spec: NodeSpec;
  readonly attempt: number;
  /** Results of upstream nodes by id; absent when there are none. */
  readonly needs: Record<string, unknown> | undefined;
  /** The part of a node that maps. */
  readonly part?: number;
  readonly item?: unknown;
  /** In the runner's own slots. */
  readonly here: boolean;
  startedAt: number;
  /** Set by whoever runs it: ends it early. It still answers, within a bounded time. */
  stop?: (why: string) => void;
  /** Why it was stopped. */
  stopped?: string;
  timer?: NodeJS.Timeout;
}

/** How an attempt ended. Everything but exit 0 is a failure. */
export interface NodeOutcome {
  exit: number;
  value?: unknown;
  error?: string;
  /** What it printed, bounded, for those who watch. */
  stdout?: string;
  stderr?: string;
  /** Where it ran. */
  worker?: string;
  slot?: number;
  /** Its own time, where it ran remote. */
  seconds?: number;
  /** It died with its worker: not charged as an attempt, up to a few times. */
  crashed?: boolean;
  /** Nobody took it: it goes back to the line, uncharged. */
  returned?: boolean;
  /** Trying again is of no use. */
  fatal?: boolean;
}

/** Ends an attempt early; it answers soon after. */
export function stopTask(task: NodeTask, why: string): void {
  if (task.stopped !== undefined) return;
  task.stopped = why;
  task.stop?.(why);
}

/** Starts the clock of an attempt that has a limit. */
export function limitTime(task: NodeTask): void {
  const { timeout } = task.spec.options;
  if (timeout === 0) return;
  task.timer = setTimeout(() => stopTask(task, `it took longer than ${timeout / 1_000} s`), timeout);
}

/** Runs tasks of one kind; may answer at once. */
export interface Executor {
  /** It starts the clock itself, for an attempt may begin later than it is handed over. */
  readonly keepsTime?: boolean;
  run(task: NodeTask): NodeOutcome | Promise<NodeOutcome>;
  close(): Promise<void>;
}
