import type { NodeSpec } from './node-spec.js';

interface Parts {
  name: string;
  env?: Readonly<Record<string, string>>;
  tokens?: Readonly<Record<string, number>>;
  ids: string[];
  specs: NodeSpec[];
  index: Map<string, number>;
  from: Int32Array;
  to: Int32Array;
  /** 1: the dependent accepts any end of the upstream node. */
  policies: Uint8Array;
}

/** A validated graph in arrays: 12 bytes per edge and direction, so that a million nodes stay small. */
export interface Graph {
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
  /** Total number of tokens, by name. */
  readonly tokens: Readonly<Record<string, number>>;
  readonly ids: readonly string[];
  readonly specs: readonly NodeSpec[];
  readonly index: ReadonlyMap<string, number>;
  /** Dependents of node i: `downs[downAt[i]]` up to `downs[downAt[i + 1]]`; the policies use the same indexes. */
  readonly downAt: Int32Array;
  readonly downs: Int32Array;
  readonly downPolicies: Uint8Array;
  /** What node i needs, in definition order. */
  readonly upAt: Int32Array;
  readonly ups: Int32Array;
  readonly upPolicies: Uint8Array;
  /** Upstream before downstream; shorter than the graph when there is a cycle. */
  readonly order: Int32Array;
  readonly cycle?: number[];
}

export function makeGraph(parts: Parts): Graph {
  const size = parts.ids.length;
  const [downAt, downs, downPolicies] = gather(size, parts.from, parts.to, parts.policies);
  const [upAt, ups, upPolicies] = gather(size, parts.to, parts.from, parts.policies);
  const order = sort(size, downAt, downs, upAt);
  return {
    name: parts.name,
    env: parts.env ?? {},
    tokens: parts.tokens ?? {},
    ids: parts.ids,
    specs: parts.specs,
    index: parts.index,
    downAt,
    downs,
    downPolicies,
    upAt,
    ups,
    upPolicies,
    order,
    cycle: order.length < size ? findCycle(size, order, upAt, ups) : undefined,
  };
}

/** Groups edges by one of their endpoints, in the order they were given. */
function gather(
  size: number,
  by: Int32Array,
  other: Int32Array,
  policies: Uint8Array,
): [Int32Array, Int32Array, Uint8Array] {
  const at = new Int32Array(size + 1);
  for (let e = 0; e < by.length; e++) at[by[e]! + 1]!++;
  for (let i = 0; i < size; i++) at[i + 1]! += at[i]!;
  const next = at.slice(0, size);
  const ends = new Int32Array(by.length);
  const marks = new Uint8Array(by.length);
  for (let e = 0; e < by.length; e++) {
    const place = next[by[e]!]!++;
    ends[place] = other[e]!;
    marks[place] = policies[e]!;
  }
  return [at, ends, marks];
}

/** Topological order by Kahn's algorithm. */
function sort(size: number, downAt: Int32Array, downs: Int32Array, upAt: Int32Array): Int32Array {
  const pending = new Int32Array(size);
  const order = new Int32Array(size);
  let found = 0;
  for (let i = 0; i < size; i++) {
    pending[i] = upAt[i + 1]! - upAt[i]!;
    if (pending[i] === 0) order[found++] = i;
  }
  for (let seen = 0; seen < found; seen++) {
    const node = order[seen]!;
    for (let e = downAt[node]!; e < downAt[node + 1]!; e++) {
      const down = downs[e]!;
      if (--pending[down]! === 0) order[found++] = down;
    }
  }
  return order.subarray(0, found);
}

/** Every node outside the order has an upstream node outside it, so walking upstream must reach a cycle. */
function findCycle(size: number, order: Int32Array, upAt: Int32Array, ups: Int32Array): number[] {
  const sorted = new Uint8Array(size);
  for (const node of order) sorted[node] = 1;
  const step = new Int32Array(size).fill(-1);
  const path: number[] = [];
  let node = sorted.indexOf(0);
  while (step[node] === -1) {
    step[node] = path.length;
    path.push(node);
    let e = upAt[node]!;
    while (sorted[ups[e]!]) e++;
    node = ups[e]!;
  }
  return rotate(path.slice(step[node]).reverse());
}

/** Starts at the node that comes first in the file, so that the same cycle is always reported the same way. */
function rotate(cycle: number[]): number[] {
  const start = cycle.indexOf(cycle.reduce((least, node) => Math.min(least, node), cycle[0]!));
  return [...cycle.slice(start), ...cycle.slice(0, start)];
}

/** The node and all its dependencies. */
export function onlyNode(graph: Graph, node: number): Set<number> {
  const kept = new Set([node]);
  for (const one of kept) {
    for (let e = graph.upAt[one]!; e < graph.upAt[one + 1]!; e++) kept.add(graph.ups[e]!);
  }
  return kept;
}
