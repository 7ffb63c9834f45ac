import type { Graph } from '../graph/graph.js';

/** The layer of each node from the left: one more than the highest of what it needs. */
export function layersOf({ ids, order, upAt, ups }: Graph): Int32Array {
  const layers = new Int32Array(ids.length);
  for (const node of order)
    for (let e = upAt[node]!; e < upAt[node + 1]!; e++) layers[node] = Math.max(layers[node]!, layers[ups[e]!]! + 1);
  return layers;
}

/** The chain of nodes that took longest, in order; nodes without a time count nothing. */
export function longestChain({ ids, order, upAt, ups }: Graph, seconds: Float64Array): number[] {
  const total = Float64Array.from(seconds);
  const before = new Int32Array(ids.length).fill(-1);
  let last = -1;
  for (const node of order) {
    for (let e = upAt[node]!; e < upAt[node + 1]!; e++) {
      const sum = total[ups[e]!]! + seconds[node]!;
      if (sum <= total[node]!) continue;
      total[node] = sum;
      before[node] = ups[e]!;
    }
    if (total[node]! > (last < 0 ? 0 : total[last]!)) last = node;
  }
  const chain: number[] = [];
  for (let node = last; node >= 0; node = before[node]!) chain.push(node);
  return chain.reverse();
}
