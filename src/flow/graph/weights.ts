import type { Graph } from './graph.js';

/** Priorities outweigh any path. */
const PRIORITY = 1e9;

/**
 * The order of ready nodes: by requested priority, then by the longest remaining path, in recorded seconds if there are
 * any, else in nodes. Unknown durations in a graph with known ones count as their mean. Without any, nodes with equal
 * paths go by their depth: a node far down a path that has started may be the long one at its end.
 */
export function computeWeights(graph: Graph, seconds?: ReadonlyMap<string, number>): Float64Array {
  const { order, downAt, downs, ids, specs } = graph;
  const takes = durations(ids, seconds);
  const weights = new Float64Array(ids.length);
  for (let k = order.length - 1; k >= 0; k--) {
    const node = order[k]!;
    let longest = 0;
    for (let e = downAt[node]!; e < downAt[node + 1]!; e++) longest = Math.max(longest, weights[downs[e]!]!);
    weights[node] = longest + takes(node);
  }
  if (!seconds || seconds.size === 0) addDepths(graph, weights);
  for (let i = 0; i < weights.length; i++) {
    weights[i] = Math.min(weights[i]!, PRIORITY / 2) + specs[i]!.options.priority * PRIORITY;
  }
  return weights;
}

/** Adds a fraction of a node, larger for nodes further from the start. */
function addDepths({ order, downAt, downs }: Graph, weights: Float64Array): void {
  const depths = new Int32Array(weights.length);
  let deepest = 0;
  for (const node of order) {
    deepest = Math.max(deepest, depths[node]!);
    for (let e = downAt[node]!; e < downAt[node + 1]!; e++)
      depths[downs[e]!] = Math.max(depths[downs[e]!]!, depths[node]! + 1);
  }
  for (let i = 0; i < weights.length; i++) weights[i]! += depths[i]! / (deepest + 1);
}

function durations(ids: readonly string[], seconds: ReadonlyMap<string, number> | undefined): (node: number) => number {
  if (!seconds || seconds.size === 0) return () => 1;
  let sum = 0;
  for (const one of seconds.values()) sum += one;
  const mean = sum / seconds.size;
  return (node) => seconds.get(ids[node]!) ?? mean;
}
