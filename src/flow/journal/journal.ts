import type { NodeEnd, StateName } from '../graph/node-spec.js';

export type FlowState = 'running' | 'done' | 'failed' | 'interrupted' | 'cancelled';

/** What a store knows about a flow. */
export interface FlowInfo {
  id: string;
  name: string;
  /** The file the flow came from, if any. */
  file: string;
  state: FlowState;
  size: number;
  created: number;
  finished?: number;
  host: string;
  pid: number;
  /** Number of nodes by final state; absent while the flow runs. */
  counts?: Record<string, number>;
}

/** What a runner says about its flow when it renews its hold: for people who look on, never for a decision. */
export interface RunnerReport {
  counts: Partial<Record<StateName, number>>;
  /** Nodes and parts of map nodes that run now, at most `MOST_RUNNING`. */
  running: RunningNode[];
}

/** The start and the attempt are absent while the node waits for its next attempt. */
export interface RunningNode {
  id: string;
  start?: number;
  attempt?: number;
}

/** Most running nodes in a report. */
export const MOST_RUNNING = 500;

/** A flow as somebody sees it who looks on. */
export interface WatchedFlow {
  info: FlowInfo;
  /** A runner holds it now. */
  held: boolean;
  /** What the latest runner said last; absent before its first renewal, and from older versions. */
  counts?: RunnerReport['counts'];
}

/** A runner that has not renewed its hold for this many milliseconds is considered dead: another may resume its flow. */
export const HOLD = 10_000;

/**
 * What must survive a crash of the runner: the flows, their definitions, and every node completion in order. These
 * alone determine which nodes are ready, so one write both completes a node and releases its dependents: nothing can be
 * counted twice or lost in between.
 */
export interface Journal {
  list(): Promise<FlowInfo[]>;
  get(id: string): Promise<FlowInfo | undefined>;
  /** Records a new flow and makes this runner its holder. */
  begin(info: FlowInfo, definition: string): Promise<void>;
  /** Takes over a flow whose runner stopped renewing or is known to be dead; false when another runner holds it. */
  takeOver(id: string, by: { host: string; pid: number }, dead: boolean): Promise<boolean>;
  definition(id: string): Promise<string | undefined>;
  /** All completions so far; for the same node, the latest counts. */
  ends(id: string): Promise<NodeEnd[]>;
  /** Writes completions, synchronously where the store can. Refused when another runner holds the flow. */
  write(ends: readonly NodeEnd[]): void | Promise<void>;
  /** Renews the runner's hold; returns whether a cancellation was requested or another runner has taken the flow over. */
  hold(report?: () => RunnerReport): Promise<'held' | 'cancel' | 'lost'>;
  finish(state: FlowState, counts: Record<string, number>): Promise<void>;
  cancel(id: string): Promise<boolean>;
  /** Whether a runner holds the flow now. */
  isHeld(id: string): Promise<boolean>;
  forget(id: string): Promise<void>;
  /** The newest flows, newest first, without their nodes. */
  watchAll(most: number): Promise<WatchedFlow[]>;
  watch(id: string): Promise<(WatchedFlow & Pick<RunnerReport, 'running'>) | undefined>;
  /** Completions after a position, which is 0 at first, and the position to go on from. */
  endsAfter(id: string, position: number): Promise<{ ends: NodeEnd[]; position: number }>;
  /** The cache records of nodes from earlier runs, by flow name. */
  recall(name: string): Promise<Map<string, Memory>>;
  remember(name: string, memories: readonly [string, Memory][]): Promise<void>;
  close(): Promise<void>;
}

/** The cache record of a node. */
export interface Memory {
  /** Hash of everything that decides whether the node must run. */
  key: string;
  /** The parts of the key, shortened, for `crore why`. */
  parts: Record<string, string>;
  /** The digest of its result that its dependents see. */
  digest: string;
  seconds: number;
  value?: unknown;
  at: number;
}

/** Encodes completions as text, with short keys because there may be millions. */
export function encodeEnds(ends: readonly NodeEnd[]): string {
  return JSON.stringify(
    ends.map(({ id, state, attempts, start, seconds, exit, value, error, output }) => {
      const plain = [id, state === 'done' ? 1 : 0, attempts, start, Math.round(seconds * 1e6) / 1e6, exit];
      if (output !== undefined) return [...plain, value ?? null, error ?? '', output];
      return error !== undefined ? [...plain, value ?? null, error] : value !== undefined ? [...plain, value] : plain;
    }),
  );
}

export function decodeEnds(rows: readonly unknown[]): NodeEnd[] {
  return (rows as [string, 0 | 1, number, number, number, number, unknown, string?, string?][]).map(
    ([id, done, attempts, start, seconds, exit, value, error, output]) => ({
      id,
      state: done ? 'done' : 'failed',
      attempts,
      start,
      seconds,
      exit,
      ...(value === undefined || (value === null && error !== undefined) ? {} : { value }),
      ...(error ? { error } : {}),
      ...(output === undefined ? {} : { output }),
    }),
  );
}

/** Running nodes as text, with short entries. */
export function encodeRunning(running: readonly RunningNode[]): string {
  return JSON.stringify(running.slice(0, MOST_RUNNING).map(({ id, start, attempt }) => [id, start, attempt]));
}

export function decodeRunning(text: string | undefined): RunningNode[] {
  const rows = JSON.parse(text || '[]') as [string, number | null, number | null][];
  return rows.map(([id, start, attempt]) => ({
    id,
    ...(start === null ? {} : { start }),
    ...(attempt === null ? {} : { attempt }),
  }));
}

/** For flows that need no resume: it stores nothing. */
export class NoJournal implements Journal {
  async list(): Promise<FlowInfo[]> {
    return [];
  }
  async get(): Promise<undefined> {
    return undefined;
  }
  async begin(_info: FlowInfo, _definition: string): Promise<void> {}
  async takeOver(_id: string, _by: { host: string; pid: number }, _dead: boolean): Promise<boolean> {
    return false;
  }
  async definition(): Promise<undefined> {
    return undefined;
  }
  async ends(): Promise<NodeEnd[]> {
    return [];
  }
  write(_ends: readonly NodeEnd[]): void | Promise<void> {}
  async hold(_report?: () => RunnerReport): Promise<'held' | 'cancel' | 'lost'> {
    return 'held';
  }
  async finish(_state: FlowState, _counts: Record<string, number>): Promise<void> {}
  async cancel(): Promise<boolean> {
    return false;
  }
  async isHeld(): Promise<boolean> {
    return false;
  }
  async forget(): Promise<void> {}
  async watchAll(): Promise<WatchedFlow[]> {
    return [];
  }
  async watch(): Promise<undefined> {
    return undefined;
  }
  async endsAfter(_id: string, position: number): Promise<{ ends: NodeEnd[]; position: number }> {
    return { ends: [], position };
  }
  async recall(): Promise<Map<string, Memory>> {
    return new Map();
  }
  async remember(): Promise<void> {}
  async close(): Promise<void> {}
}
