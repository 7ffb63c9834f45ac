import { CroreError } from '../../errors.js';
import type { Graph } from '../graph/graph.js';
import { STATE_NAMES } from '../graph/node-spec.js';
import { checkSize } from './picture-limits.js';
import { COLOURS } from './state-colours.js';

type Form = (graph: Graph, state: (node: number) => string) => string | Promise<string>;

const FORMS: Record<string, Form> = {
  mmd: mermaid,
  dot,
  // Loaded only for a picture, because its library takes time to load.
  svg: async (graph, state) => (await import('./svg.js')).svg(graph, state),
};

/** Refuses a file name that selects no format, and graphs that are too large for the format. */
export function checkExport(graph: Graph, file: string): void {
  checkSize(graph, formOf(file));
}

/** Draws the graph in the format that the file's name selects. */
export async function exportGraph(graph: Graph, states: ArrayLike<number>, file: string): Promise<string> {
  checkExport(graph, file);
  return FORMS[formOf(file)]!(graph, (node) => STATE_NAMES[states[node] ?? 0]!);
}

function formOf(file: string): string {
  const form = /\.(mmd|dot|svg)$/.exec(file)?.[1];
  if (form === undefined) throw new CroreError('BAD_OPTION', `--graph: '${file}' must end in .svg, .dot or .mmd`);
  return form;
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
