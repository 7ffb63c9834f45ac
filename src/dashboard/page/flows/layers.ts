/** Large graphs, placed by the layers that the server computed: in time that grows with the graph alone. */
import type { FlowNode } from '../../api.js';
import { type Box, HEIGHT, type Layout, widthOf } from './layout.js';

const [GAP_X, GAP_Y, GAP_COLUMN, SWEEPS] = [70, 10, 16, 4];

export function placeByLayers(nodes: readonly FlowNode[], edges: readonly number[]): Layout {
  const layers = ordered(nodes, edges);
  const rows = Math.max(12, Math.ceil(Math.sqrt(nodes.length) * 1.2));
  const boxes: Box[] = new Array(nodes.length);
  let [x, height] = [0, 0];
  for (const layer of layers) {
    // A layer with many nodes has several columns.
    for (let from = 0; from < layer.length; from += rows) {
      const column = layer.slice(from, from + rows);
      const widths = column.map((node) => widthOf(nodes[node]!));
      column.forEach((node, row) => {
        boxes[node] = { x, y: row * (HEIGHT + GAP_Y), width: widths[row]! };
      });
      height = Math.max(height, column.length * (HEIGHT + GAP_Y) - GAP_Y);
      x += Math.max(...widths) + GAP_COLUMN;
    }
    if (layer.length > 0) x += GAP_X - GAP_COLUMN;
  }
  return { width: Math.max(0, x - GAP_X), height, boxes, paths: pathsOf(boxes, edges) };
}

/** The nodes of each layer in an order with few crossings: each at the mean of its neighbours. Single nodes follow groups. */
function ordered(nodes: readonly FlowNode[], edges: readonly number[]): number[][] {
  const layers: number[][] = [];
  nodes.forEach(({ layer }, node) => {
    while (layers.length <= layer) layers.push([]);
    layers[layer]!.push(node);
  });
  const [befores, afters] = [neighbours(nodes.length, edges, 1), neighbours(nodes.length, edges, 0)];
  const position = new Float64Array(nodes.length);
  const number = (layer: readonly number[]) => {
    for (const [row, node] of layer.entries()) position[node] = row / layer.length;
  };
  for (const layer of layers) number(layer);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const beside = sweep % 2 === 0 ? befores : afters;
    for (const layer of sweep % 2 === 0 ? layers : [...layers].reverse()) {
      const wanted = new Map(layer.map((node) => [node, mean(beside[node]!, position, position[node]!)]));
      layer.sort((a, b) => alone(nodes[a]!) - alone(nodes[b]!) || wanted.get(a)! - wanted.get(b)! || a - b);
      number(layer);
    }
  }
  return layers;
}

/** Where nodes are collapsed, single ones come and go: groups keep their places. */
function alone({ size }: FlowNode): number {
  return size === undefined ? 1 : 0;
}

function neighbours(size: number, edges: readonly number[], side: 0 | 1): number[][] {
  const found: number[][] = Array.from({ length: size }, () => []);
  for (let e = 0; e < edges.length; e += 2) found[edges[e + side]!]!.push(edges[e + 1 - side]!);
  return found;
}

function mean(nodes: readonly number[], position: Float64Array, otherwise: number): number {
  let sum = 0;
  for (const node of nodes) sum += position[node]!;
  return nodes.length === 0 ? otherwise : sum / nodes.length;
}

function pathsOf(boxes: readonly Box[], edges: readonly number[]): string[] {
  const paths: string[] = [];
  for (let e = 0; e < edges.length; e += 2) {
    const [from, to] = [boxes[edges[e]!]!, boxes[edges[e + 1]!]!];
    const [x, y, right, below] = [from.x + from.width, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
    const middle = Math.round((x + right) / 2);
    paths.push(`M${x} ${y}C${middle} ${y} ${middle} ${below} ${right} ${below}`);
  }
  return paths;
}
