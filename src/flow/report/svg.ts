import type { Graph } from '../graph/graph.js';
import { COLOURS } from './graph-export.js';

const [HIGH, GAP_X, GAP_Y, LETTER, MARGIN, LEGEND] = [28, 56, 14, 7.2, 20, 34];
const LONGEST = 28;

/**
 * Draws the graph in layers from left to right: a node is to the right of everything it needs, near the vertical middle
 * of it.
 */
export function svg(graph: Graph, state: (node: number) => string): string {
  const columns = order(graph, layers(graph));
  const widths = columns.map((column) =>
    Math.max(40, ...column.map((node) => label(graph, node).length * LETTER + 20)),
  );
  const tallest = Math.max(0, ...columns.map((column) => column.length));
  const height = tallest * (HIGH + GAP_Y) + 2 * MARGIN + LEGEND;
  const place = new Map<number, { x: number; y: number; w: number }>();
  let x = MARGIN;
  columns.forEach((column, c) => {
    const top = MARGIN + LEGEND + ((tallest - column.length) * (HIGH + GAP_Y)) / 2;
    column.forEach((node, row) => void place.set(node, { x, y: top + row * (HIGH + GAP_Y), w: widths[c]! }));
    x += widths[c]! + GAP_X;
  });
  const width = Math.max(x - GAP_X + MARGIN, 560);
  const body = [
    ...arrows(graph, place),
    ...graph.ids.map((_id, node) => box(graph, node, place.get(node)!, state(node))),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.ceil(width)}" height="${Math.ceil(height)}" viewBox="0 0 ${Math.ceil(width)} ${Math.ceil(height)}" font-family="ui-monospace, monospace" font-size="12">
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#71717a"/></marker></defs>
<rect width="100%" height="100%" fill="#ffffff"/>
${legend(graph, state)}
${body.join('\n')}
</svg>
`;
}

/** Layers by the longest path from a node without dependencies. */
function layers({ ids, order: sorted, upAt, ups }: Graph): number[][] {
  const layer = new Int32Array(ids.length);
  const columns: number[][] = [];
  for (const node of sorted) {
    for (let e = upAt[node]!; e < upAt[node + 1]!; e++) layer[node] = Math.max(layer[node]!, layer[ups[e]!]! + 1);
    const column = columns[layer[node]!];
    if (column) column.push(node);
    else columns[layer[node]!] = [node];
  }
  return columns;
}

/**
 * Sorts the nodes of each column by the mean position of their neighbours, in several passes in both directions, to
 * reduce crossing arrows.
 */
function order(graph: Graph, columns: number[][]): number[][] {
  const at = new Float64Array(graph.ids.length);
  const place = (column: readonly number[]) => {
    for (const [row, node] of column.entries()) at[node] = row - column.length / 2;
  };
  const mean = (node: number, from: Int32Array, others: Int32Array) => {
    let sum = 0;
    for (let e = from[node]!; e < from[node + 1]!; e++) sum += at[others[e]!]!;
    const count = from[node + 1]! - from[node]!;
    return count === 0 ? at[node]! : sum / count;
  };
  for (const column of columns) place(column);
  for (let round = 0; round < 6; round++) {
    const [from, others] = round % 2 === 0 ? [graph.upAt, graph.ups] : [graph.downAt, graph.downs];
    for (const column of round % 2 === 0 ? columns : [...columns].reverse()) {
      const middle = new Map(column.map((node) => [node, mean(node, from, others)]));
      column.sort((a, b) => middle.get(a)! - middle.get(b)! || a - b);
      place(column);
    }
  }
  return columns;
}

function* arrows(
  { ids, upAt, ups, upPolicies }: Graph,
  place: Map<number, { x: number; y: number; w: number }>,
): Generator<string> {
  for (let node = 0; node < ids.length; node++) {
    for (let e = upAt[node]!; e < upAt[node + 1]!; e++) {
      const [from, to] = [place.get(ups[e]!)!, place.get(node)!];
      const [x1, y1, x2, y2] = [from.x + from.w, from.y + HIGH / 2, to.x, to.y + HIGH / 2];
      const bend = Math.max(20, (x2 - x1) / 2);
      const dashes = upPolicies[e] === 1 ? ' stroke-dasharray="5 4"' : '';
      yield `<path d="M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}" fill="none" stroke="#a1a1aa" marker-end="url(#tip)"${dashes}/>`;
    }
  }
}

function box(graph: Graph, node: number, { x, y, w }: { x: number; y: number; w: number }, state: string): string {
  const [fill, stroke] = COLOURS[state]!;
  return `<g class="${state}"><title>${safe(graph.ids[node]!)}: ${state}</title><rect x="${x}" y="${y}" width="${w}" height="${HIGH}" rx="6" fill="${fill}" stroke="${stroke}"/><text x="${x + w / 2}" y="${y + 18}" text-anchor="middle" fill="#18181b">${safe(label(graph, node))}</text></g>`;
}

function legend(graph: Graph, state: (node: number) => string): string {
  const counts = new Map<string, number>();
  for (let node = 0; node < graph.ids.length; node++) counts.set(state(node), (counts.get(state(node)) ?? 0) + 1);
  let x = MARGIN;
  const parts = [...counts].map(([name, count]) => {
    const [fill, stroke] = COLOURS[name]!;
    const text = `${count} ${name}`;
    const part = `<rect x="${x}" y="14" width="12" height="12" rx="3" fill="${fill}" stroke="${stroke}"/><text x="${x + 18}" y="24" fill="#3f3f46">${text}</text>`;
    x += 30 + text.length * LETTER;
    return part;
  });
  return parts.join('');
}

function label(graph: Graph, node: number): string {
  const id = graph.ids[node]!;
  return id.length > LONGEST ? `${id.slice(0, LONGEST - 1)}…` : id;
}

function safe(text: string): string {
  return text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);
}
