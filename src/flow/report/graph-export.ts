import { CroreError } from '../../errors.js';
import type { Graph } from '../graph/graph.js';
import { STATE_NAMES } from '../graph/node-spec.js';
import { svg } from './svg.js';

/** Fill and border colours of the states. */
export const COLOURS: Record<string, readonly [string, string]> = {
  blocked: ['#f4f4f5', '#a1a1aa'],
  ready: ['#e0f2fe', '#0284c7'],
  running: ['#fef9c3', '#ca8a04'],
  done: ['#dcfce7', '#16a34a'],
  failed: ['#fee2e2', '#dc2626'],
  skipped: ['#ede9fe', '#7c3aed'],
  cancelled: ['#e4e4e7', '#52525b'],
};

const FORMS = { mmd: mermaid, dot, svg } as const;
/** Nobody can read a larger picture, and drawing it takes too long. */
const LARGEST = 20_000;

/** Draws the graph in the format that the file's name selects. */
export function exportGraph(graph: Graph, states: ArrayLike<number>, file: string): string {
  const form = /\.(mmd|dot|svg)$/.exec(file)?.[1] as keyof typeof FORMS | undefined;
  if (form === undefined) throw new CroreError('BAD_OPTION', `--graph: '${file}' must end in .svg, .dot or .mmd`);
  if (graph.ids.length > LARGEST)
    throw new CroreError(
      'BAD_OPTION',
      `--graph: ${graph.ids.length} nodes are too many for a picture (at most ${LARGEST})`,
    );
  return FORMS[form](graph, (node) => STATE_NAMES[states[node] ?? 0]!);
}

function* edges({ upAt, ups, upPolicies, ids }: Graph): Generator<[number, number, boolean]> {
  for (let node = 0; node < ids.length; node++) {
    for (let e = upAt[node]!; e < upAt[node + 1]!; e++) yield [ups[e]!, node, upPolicies[e] === 1];
  }
}

function mermaid(graph: Graph, state: (node: number) => string): string {
  const safe = (text: string) => text.replace(/[&<>"#;]/g, (char) => `#${char.charCodeAt(0)};`);
  const nodes = graph.ids.map((id, node) => `  n${node}["${safe(id)}"]:::${state(node)}`);
  const arrows = [...edges(graph)].map(([from, to, any]) => `  n${from} ${any ? '-.->' : '-->'} n${to}`);
  const classes = Object.entries(COLOURS).map(
    ([name, [fill, stroke]]) => `  classDef ${name} fill:${fill},stroke:${stroke}`,
  );
  return `${['flowchart LR', ...nodes, ...arrows, ...classes].join('\n')}\n`;
}

function dot(graph: Graph, state: (node: number) => string): string {
  const safe = (text: string) => text.replace(/["\\]/g, '\\$&');
  const nodes = graph.ids.map((id, node) => {
    const [fill, stroke] = COLOURS[state(node)]!;
    return `  n${node} [label="${safe(id)}", fillcolor="${fill}", color="${stroke}", tooltip="${state(node)}"];`;
  });
  const arrows = [...edges(graph)].map(([from, to, any]) => `  n${from} -> n${to}${any ? ' [style=dashed]' : ''};`);
  const style = ['  rankdir=LR;', '  node [shape=box, style="rounded,filled", fontname="sans-serif"];'];
  return `${[`digraph "${safe(graph.name)}" {`, ...style, ...nodes, ...arrows, '}'].join('\n')}\n`;
}
