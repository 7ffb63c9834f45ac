import type { Graph } from '../graph/graph.js';
import { type Box, type Layout, layOut, type Point } from './layout.js';
import { COLOURS } from './state-colours.js';
import { clip, printable, textWidth } from './text-width.js';

const [HEIGHT, LETTER, MARGIN, LEGEND] = [28, 7.2, 20, 34];
/** The smallest picture has room for the legend. */
const NARROWEST = 560;
/** Longer ids are cut; the whole id is in the title. */
const LONGEST = 28;

/** Draws the graph in columns from left to right: a node is to the right of everything it needs. */
export function svg(graph: Graph, state: (node: number) => string): string {
  const labels = graph.ids.map((id) => clip(printable(id), LONGEST));
  const sizes = labels.map((label) => ({ width: Math.max(40, textWidth(label) * LETTER + 20), height: HEIGHT }));
  const layout = moved(layOut(graph, sizes), MARGIN, MARGIN + LEGEND);
  const width = Math.ceil(Math.max(layout.width + 2 * MARGIN, NARROWEST));
  const height = Math.ceil(layout.height + 2 * MARGIN + LEGEND);
  const arrows = layout.routes.map((route, edge) => arrow(route, graph.upPolicies[edge] === 1));
  const boxes = layout.boxes.map((box, node) => boxOf(box, graph.ids[node]!, labels[node]!, state(node)));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, monospace" font-size="12">
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#71717a"/></marker></defs>
<rect width="100%" height="100%" fill="#ffffff"/>
${[legend(graph, state), ...arrows, ...boxes].join('\n')}
</svg>
`;
}

function moved({ width, height, boxes, routes }: Layout, right: number, down: number): Layout {
  const move = <T extends Point>(point: T): T => ({ ...point, x: point.x + right, y: point.y + down });
  return { width, height, boxes: boxes.map(move), routes: routes.map((route) => route.map(move)) };
}

/** Level pieces are straight; a change of height is a curve that stays between the columns. */
function arrow(route: readonly Point[], any: boolean): string {
  const start = route[0]!;
  let path = `M${round(start.x)} ${round(start.y)}`;
  let last = start;
  for (const point of route.slice(1)) {
    const [x, y] = [round(point.x), round(point.y)];
    const middle = round((last.x + point.x) / 2);
    if (round(last.y) !== y) path += `C${middle} ${round(last.y)} ${middle} ${y} ${x} ${y}`;
    else if (round(last.x) !== x) path += `L${x} ${y}`;
    last = point;
  }
  const dashes = any ? ' stroke-dasharray="5 4"' : '';
  return `<path d="${path}" fill="none" stroke="#a1a1aa" marker-end="url(#tip)"${dashes}/>`;
}

function boxOf({ x, y, width, height }: Box, id: string, label: string, state: string): string {
  const [fill, stroke] = COLOURS[state]!;
  const [left, top] = [round(x - width / 2), round(y - height / 2)];
  return `<g class="${state}"><title>${safe(printable(id))}: ${state}</title><rect x="${left}" y="${top}" width="${round(width)}" height="${height}" rx="6" fill="${fill}" stroke="${stroke}"/><text x="${round(x)}" y="${round(y + 4)}" text-anchor="middle" fill="#18181b">${safe(label)}</text></g>`;
}

function legend(graph: Graph, state: (node: number) => string): string {
  const counts = new Map<string, number>();
  for (let node = 0; node < graph.ids.length; node++) counts.set(state(node), (counts.get(state(node)) ?? 0) + 1);
  let x = MARGIN;
  const parts = [...counts].map(([name, count]) => {
    const [fill, stroke] = COLOURS[name]!;
    const text = `${count} ${name}`;
    const part = `<rect x="${round(x)}" y="14" width="12" height="12" rx="3" fill="${fill}" stroke="${stroke}"/><text x="${round(x + 18)}" y="24" fill="#3f3f46">${text}</text>`;
    x += 30 + text.length * LETTER;
    return part;
  });
  return parts.join('');
}

const round = (length: number): number => Math.round(length * 10) / 10;

function safe(text: string): string {
  return text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);
}
