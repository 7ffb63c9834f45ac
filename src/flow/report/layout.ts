import { Graph as DagreGraph, layout } from '@dagrejs/dagre';

/** The part of a `Graph` that is needed here: the dashboard's page has no more. */
export interface Edges {
  readonly ids: readonly string[];
  readonly upAt: Int32Array;
  readonly ups: Int32Array;
}

/** A node: its middle and its size. */
export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Point {
  x: number;
  y: number;
}

export interface Layout {
  width: number;
  height: number;
  /** By node. */
  boxes: Box[];
  /** By edge, with the indexes of `graph.ups`: from the right side of a node to the left side of the other. */
  routes: Point[][];
}

/** What is used of the library, whose own declarations do not resolve in this module system. */
interface Drawing {
  setGraph(options: Record<string, unknown>): void;
  setNode(name: string, box: { width: number; height: number }): void;
  setEdge(from: string, to: string, options: object, name: string): void;
  graph(): { width: number; height: number };
  node(name: string): Box;
  edge(from: string, to: string, name: string): { points: Point[] };
}

/** Distances between columns, between nodes of a column, and between edges that pass through a column. */
const [COLUMNS, NODES, EDGES] = [56, 14, 10];
/** How far apart two positions can be and still mean the same column. */
const NEAR = 0.5;

/** Places the nodes in columns from left to right and leads the edges around them. */
export function layOut(graph: Edges, sizes: readonly { width: number; height: number }[]): Layout {
  if (graph.ids.length === 0) return { width: 0, height: 0, boxes: [], routes: [] };
  const drawing = new DagreGraph({ multigraph: true }) as unknown as Drawing;
  // The tree is nearly as good as the slowest method and ten times as fast for a thousand nodes.
  drawing.setGraph({ rankdir: 'LR', ranker: 'tight-tree', ranksep: COLUMNS, nodesep: NODES, edgesep: EDGES });
  sizes.forEach((size, node) => void drawing.setNode(`${node}`, { ...size }));
  for (const [edge, from, to] of edges(graph)) drawing.setEdge(`${from}`, `${to}`, {}, `${edge}`);
  layout(drawing as unknown as Parameters<typeof layout>[0]);
  const boxes = graph.ids.map((_id, node) => drawing.node(`${node}`));
  const columns = columnsOf(boxes);
  const routes: Point[][] = [];
  for (const [edge, from, to] of edges(graph))
    routes[edge] = route(boxes[from]!, drawing.edge(`${from}`, `${to}`, `${edge}`).points, boxes[to]!, columns);
  const { width, height } = drawing.graph();
  return { width, height, boxes, routes };
}

function* edges({ ids, upAt, ups }: Edges): Generator<[edge: number, from: number, to: number]> {
  for (let to = 0; to < ids.length; to++) for (let e = upAt[to]!; e < upAt[to + 1]!; e++) yield [e, ups[e]!, to];
}

interface Column {
  middle: number;
  left: number;
  right: number;
}

/** The nodes of a column have the same middle and different widths. */
function columnsOf(boxes: readonly Box[]): Column[] {
  const columns: Column[] = [];
  for (const { x, width } of [...boxes].sort((a, b) => a.x - b.x)) {
    const last = columns.at(-1);
    if (!last || x - last.middle > NEAR) columns.push({ middle: x, left: x - width / 2, right: x + width / 2 });
    else {
      last.left = Math.min(last.left, x - width / 2);
      last.right = Math.max(last.right, x + width / 2);
    }
  }
  return columns;
}

/**
 * The points of an edge. Within a column the edge is level, over the whole width of the column, because a slope could
 * cut the corner of a node above or below it. It changes its height only between columns, where there are no nodes; the
 * library's points there are not needed.
 */
function route(from: Box, points: readonly Point[], to: Box, columns: readonly Column[]): Point[] {
  const route: Point[] = [{ x: from.x + from.width / 2, y: from.y }];
  const own = columns.find(({ middle }) => Math.abs(middle - from.x) <= NEAR)!;
  route.push({ x: own.right, y: from.y });
  let at = columns.indexOf(own) + 1;
  for (const { x, y } of points.slice(1, -1)) {
    while (at < columns.length && columns[at]!.middle < x - NEAR) at++;
    const column = columns[at];
    if (column && Math.abs(column.middle - x) <= NEAR) route.push({ x: column.left, y }, { x: column.right, y });
  }
  const last = columns.find(({ middle }) => Math.abs(middle - to.x) <= NEAR)!;
  route.push({ x: last.left, y: to.y }, { x: to.x - to.width / 2, y: to.y });
  return route;
}
