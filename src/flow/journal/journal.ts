import type { NodeEnd } from '../graph/node-spec.js';

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
  hold(): Promise<'held' | 'cancel' | 'lost'>;
  finish(state: FlowState, counts: Record<string, number>): Promise<void>;
  cancel(id: string): Promise<boolean>;
  /** Whether a runner holds the flow now. */
  isHeld(id: string): Promise<boolean>;
  forget(id: string): Promise<void>;
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
  async hold(): Promise<'held' | 'cancel' | 'lost'> {
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
  async recall(): Promise<Map<string, Memory>> {
    return new Map();
  }
  async remember(): Promise<void> {}
  async close(): Promise<void> {}
}
