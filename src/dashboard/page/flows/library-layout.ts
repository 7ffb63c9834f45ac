/** Small graphs, laid out by the library that `crore flow graph` uses too: edges lead around the nodes. */
import { layOut, type Point } from '../../../flow/report/layout.js';
import type { FlowNode } from '../../api.js';
import { HEIGHT, type Layout, widthOf } from './layout.js';

export function layOutSmall(nodes: readonly FlowNode[], edges: readonly number[]): Layout {
  const { upAt, ups, place } = byTarget(nodes.length, edges);
  const sizes = nodes.map((node) => ({ width: widthOf(node), height: HEIGHT }));
  const { width, height, boxes, routes } = layOut({ ids: nodes.map(({ id }) => id), upAt, ups }, sizes);
  return {
    width,
    height,
    boxes: boxes.map((box) => ({ x: box.x - box.width / 2, y: box.y - HEIGHT / 2, width: box.width })),
    paths: place.map((at) => pathOf(routes[at]!)),
  };
}

/** The edges by the node they lead to, and where each of them is then. */
function byTarget(size: number, edges: readonly number[]): { upAt: Int32Array; ups: Int32Array; place: number[] } {
  const upAt = new Int32Array(size + 1);
  for (let e = 1; e < edges.length; e += 2) upAt[edges[e]! + 1]!++;
  for (let i = 0; i < size; i++) upAt[i + 1]! += upAt[i]!;
  const next = upAt.slice(0, size);
  const ups = new Int32Array(edges.length / 2);
  const place: number[] = [];
  for (let e = 0; e < edges.length; e += 2) {
    const at = next[edges[e + 1]!]!++;
    ups[at] = edges[e]!;
    place.push(at);
  }
  return { upAt, ups, place };
}

/** Level pieces are straight; a change of height is a curve between the columns. */
function pathOf(route: readonly Point[]): string {
  let last = route[0]!;
  let path = `M${round(last.x)} ${round(last.y)}`;
  for (const point of route.slice(1)) {
    const middle = round((last.x + point.x) / 2);
    const to = `${round(point.x)} ${round(point.y)}`;
    path +=
      round(last.y) === round(point.y) ? `L${to}` : `C${middle} ${round(last.y)} ${middle} ${round(point.y)} ${to}`;
    last = point;
  }
  return path;
}

const round = (length: number): number => Math.round(length * 10) / 10;
