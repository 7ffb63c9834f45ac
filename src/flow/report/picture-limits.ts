import { CroreError } from '../../errors.js';
import type { Graph } from '../graph/graph.js';

/** Tools that read .dot and .mmd have limits of their own; beyond this nobody can read the picture. */
const LARGEST = 20_000;

/** What can be laid out in a few seconds. An edge has one piece for each column that it crosses. */
const SVG_LIMITS = { nodes: 1_000, edges: 2_500, 'pieces of edges': 6_000 };

/** Refuses graphs that would take too long to draw. */
export function checkSize(graph: Graph, form: string): void {
  const nodes = graph.ids.length;
  if (nodes > LARGEST)
    throw new CroreError('BAD_OPTION', `--graph: ${nodes} nodes are too many to draw (at most ${LARGEST})`);
  if (form !== 'svg') return;
  const sizes = { nodes, edges: graph.ups.length, 'pieces of edges': pieces(graph) };
  for (const [what, limit] of Object.entries(SVG_LIMITS)) {
    const size = sizes[what as keyof typeof sizes];
    if (size <= limit) continue;
    const advice = 'write a .dot or .mmd file instead';
    throw new CroreError(
      'BAD_OPTION',
      `--graph: ${size} ${what} are too many for an .svg (at most ${limit}): ${advice}`,
    );
  }
}

/** Counts for each edge the columns between its ends, when every node is as far left as possible. */
function pieces({ ids, order, upAt, ups }: Graph): number {
  const column = new Int32Array(ids.length);
  let sum = 0;
  for (const node of order) {
    for (let e = upAt[node]!; e < upAt[node + 1]!; e++) column[node] = Math.max(column[node]!, column[ups[e]!]! + 1);
    for (let e = upAt[node]!; e < upAt[node + 1]!; e++) sum += column[node]! - column[ups[e]!]!;
  }
  return sum;
}
