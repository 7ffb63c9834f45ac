import type { NodeEnd } from '../graph/node-spec.js';

export type FlowState = 'running' | 'done' | 'failed' | 'interrupted' | 'cancelled';

/** What a store knows of a flow. */
export interface FlowInfo {
  id: string;
  name: string;
  /** The file it came from, if any. */
  file: string;
  state: FlowState;
  size: number;
  created: number;
  finished?: number;
  host: string;
  pid: number;
  /** Nodes by how they ended; absent while it runs. */
  counts?: Record<string, number>;
}

/** A runner not heard of for this long, in milliseconds, is gone: somebody else may resume its flow. */
export const HOLD = 10_000;

/**
 * What must survive a crash of the runner: which flows there are, what they are made of, and every end of a node in the
 * order of the ends. Which nodes are ready follows from that alone, so one write both ends a node and frees its dependents:
 * nothing can be counted twice or be lost between the two.
 */
export interface Journal {
  list(): Promise<FlowInfo[]>;
  get(id: string): Promise<FlowInfo | undefined>;
  /** Writes a new flow down and makes this runner its holder. */
  begin(info: FlowInfo, definition: string): Promise<void>;
  /** Takes over a flow whose runner is gone, or known to be dead; false when another one holds it. */
  takeOver(id: string, by: { host: string; pid: number }, dead: boolean): Promise<boolean>;
  definition(id: string): Promise<string | undefined>;
  /** All ends so far; a later one of the same node counts. */
  ends(id: string): Promise<NodeEnd[]>;
  /** Writes ends down; at once where the store can. Refused when another runner holds the flow. */
  write(ends: readonly NodeEnd[]): void | Promise<void>;
  /** Says that the runner lives; what it answers: somebody asked to cancel, or the flow is no longer ours. */
  hold(): Promise<'held' | 'cancel' | 'lost'>;
  finish(state: FlowState, counts: Record<string, number>): Promise<void>;
  cancel(id: string): Promise<boolean>;
  /** Whether a runner holds the flow now. */
  isHeld(id: string): Promise<boolean>;
  forget(id: string): Promise<void>;
  /** What is remembered of nodes from run to run, by flow name. */
  recall(name: string): Promise<Map<string, Memory>>;
  remember(name: string, memories: readonly [string, Memory][]): Promise<void>;
  close(): Promise<void>;
}

/** What is remembered of a node that is cached. */
export interface Memory {
  /** Hash of everything that decides whether it must run. */
  key: string;
  /** The parts of the key, short, for `crore why`. */
  parts: Record<string, string>;
  /** What its dependents see of it. */
  digest: string;
  seconds: number;
  value?: unknown;
  at: number;
}

/** Ends in a text: short keys, for there may be millions. */
export function encodeEnds(ends: readonly NodeEnd[]): string {
  return JSON.stringify(
    ends.map(({ id, state, attempts, start, seconds, exit, value, error }) => {
      const plain = [id, state === 'done' ? 1 : 0, attempts, start, Math.round(seconds * 1e6) / 1e6, exit];
      return error !== undefined ? [...plain, value ?? null, error] : value !== undefined ? [...plain, value] : plain;
    }),
  );
}

export function decodeEnds(rows: readonly unknown[]): NodeEnd[] {
  return (rows as [string, 0 | 1, number, number, number, number, unknown, string | undefined][]).map(
    ([id, done, attempts, start, seconds, exit, value, error]) => ({
      id,
      state: done ? 'done' : 'failed',
      attempts,
      start,
      seconds,
      exit,
      ...(value === undefined || (value === null && error !== undefined) ? {} : { value }),
      ...(error === undefined ? {} : { error }),
    }),
  );
}

/** For flows that nobody wants to resume: it forgets everything. */
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
