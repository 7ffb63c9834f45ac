import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Graph, makeGraph } from '../../dist/flow/graph/graph.js';
import { GraphBuilder } from '../../dist/flow/graph/graph-builder.js';
import { DEFAULT_OPTIONS, STATE_NAMES } from '../../dist/flow/graph/node-spec.js';
import { checkExport, exportGraph } from '../../dist/flow/report/graph-export.js';
import { COLOURS } from '../../dist/flow/report/state-colours.js';
import { place } from './support.js';

type Edge = [from: number, to: number];

function graphOf(ids: readonly string[], edges: readonly Edge[]): Graph {
  const draft = new GraphBuilder((id) => id);
  for (const id of ids) draft.node(id, { work: { kind: 'shell', run: 'true' }, options: DEFAULT_OPTIONS });
  for (const [from, to] of edges) draft.edge(ids[from]!, ids[to]!);
  return draft.finish({ name: 'x' });
}

interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}
type Point = [x: number, y: number];
interface Picture {
  boxes: Rect[];
  /** Each edge as many short straight lines. */
  lines: Point[][];
  width: number;
  height: number;
}

const draw = (graph: Graph, states: ArrayLike<number> = []) => exportGraph(graph, states, 'x.svg');

function parse(svg: string): Picture {
  const numbers = (text: string) => (text.match(/-?[\d.]+/g) ?? []).map(Number);
  const [width, height] = numbers(/viewBox="0 0 ([\d. ]+)"/.exec(svg)![1]!);
  const rects = svg.matchAll(/<\/title><rect x="([^"]+)" y="([^"]+)" width="([^"]+)" height="([^"]+)"/g);
  const boxes = [...rects].map((found) => {
    const [x, y, width, height] = found.slice(1).map(Number);
    return { x: x!, y: y!, width: width!, height: height! };
  });
  const paths = [...svg.matchAll(/<path d="([^"]+)" fill="none"/g)].map(([, path]) => path!);
  const lines = paths.map((path) => {
    const points: Point[] = [];
    for (const [, letter, text] of path.matchAll(/([MLC])([^MLC]+)/g)) {
      const [a, b, c, d, e, f] = numbers(text!);
      if (letter === 'C') points.push(...curve(points.at(-1)!, [a!, b!], [c!, d!], [e!, f!]));
      else points.push([a!, b!]);
    }
    return points;
  });
  return { boxes, lines, width: width!, height: height! };
}

function curve(start: Point, a: Point, b: Point, end: Point): Point[] {
  return Array.from({ length: 24 }, (_, i) => {
    const t = (i + 1) / 24;
    const at = (k: 0 | 1) =>
      (1 - t) ** 3 * start[k] + 3 * (1 - t) ** 2 * t * a[k] + 3 * (1 - t) * t ** 2 * b[k] + t ** 3 * end[k];
    return [at(0), at(1)];
  });
}

/** Whether the straight line has a point inside the box: the line is cut off at each of the four sides. */
function crosses([x1, y1]: Point, [x2, y2]: Point, { x, y, width, height }: Rect): boolean {
  let [first, last] = [0, 1];
  const sides: [number, number][] = [
    [x1 - x2, x1 - x],
    [x2 - x1, x + width - x1],
    [y1 - y2, y1 - y],
    [y2 - y1, y + height - y1],
  ];
  for (const [direction, room] of sides) {
    if (direction === 0 && room <= 0) return false;
    if (direction < 0) first = Math.max(first, room / direction);
    if (direction > 0) last = Math.min(last, room / direction);
  }
  return first < last;
}

/** Checks that boxes do not overlap, edges join their nodes, and no edge touches another node. */
function checkPicture(picture: Picture, edges: readonly Edge[]): void {
  const { boxes, lines, width, height } = picture;
  for (const [i, a] of boxes.entries()) {
    expect(a.x >= 0 && a.y >= 0 && a.x + a.width <= width && a.y + a.height <= height, `box ${i} is inside`).toBe(true);
    for (const b of boxes.slice(i + 1)) {
      const apart = a.x + a.width < b.x || b.x + b.width < a.x || a.y + a.height < b.y || b.y + b.height < a.y;
      expect(apart).toBe(true);
    }
  }
  expect(lines).toHaveLength(edges.length);
  const wanted = [...edges].sort((a, b) => a[1] - b[1]); // the picture has them in the order of their second node
  for (const [e, line] of lines.entries()) {
    const [from, to] = wanted[e]!;
    const [start, end] = [boxes[from]!, boxes[to]!];
    expect(line[0]![0]).toBeCloseTo(start.x + start.width, 0);
    expect(line.at(-1)![0]).toBeCloseTo(end.x, 0);
    expect(Math.abs(line[0]![1] - (start.y + start.height / 2))).toBeLessThan(1);
    expect(Math.abs(line.at(-1)![1] - (end.y + end.height / 2))).toBeLessThan(1);
    for (const [node, box] of boxes.entries()) {
      if (node === from || node === to) continue;
      for (let i = 1; i < line.length; i++)
        if (crosses(line[i - 1]!, line[i]!, box)) throw new Error(`the edge ${from} -> ${to} crosses node ${node}`);
    }
  }
}

const names = (count: number) => Array.from({ length: count }, (_, i) => `node ${i}${'x'.repeat((i * 7) % 20)}`);

const SHAPES: [string, number, Edge[]][] = [
  ['nothing', 0, []],
  ['one node', 1, []],
  ['nodes without edges', 5, []],
  ['a chain', 6, [0, 1, 2, 3, 4].map((i): Edge => [i, i + 1])],
  ['a fan', 12, Array.from({ length: 11 }, (_, i): Edge => [0, i + 1])],
  [
    'a diamond',
    4,
    [
      [0, 1],
      [0, 2],
      [1, 3],
      [2, 3],
    ],
  ],
  [
    'edges over several columns beside nodes of other widths',
    8,
    [
      [0, 1],
      [1, 2],
      [2, 3],
      [3, 4],
      [0, 4],
      [0, 3],
      [1, 4],
      [5, 6],
      [6, 4],
      [0, 6],
      [7, 4],
    ],
  ],
  [
    'two edges between the same nodes',
    2,
    [
      [0, 1],
      [0, 1],
    ],
  ],
];

describe('the picture of a graph', () => {
  it.each(SHAPES)('shows %s without edges that cross nodes', async (_name, size, edges) => {
    checkPicture(parse(await draw(graphOf(names(size), edges))), edges);
  });

  it('leads the edges of any graph around the nodes', async () => {
    const dag = fc.integer({ min: 2, max: 14 }).chain((size) =>
      fc.record({
        size: fc.constant(size),
        pairs: fc.uniqueArray(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { maxLength: 40, selector: String }),
      }),
    );
    await fc.assert(
      fc.asyncProperty(dag, async ({ size, pairs }) => {
        const edges = pairs.filter(([a, b]) => a < b);
        checkPicture(parse(await draw(graphOf(names(size), edges))), edges);
      }),
      { numRuns: 40 },
    );
  });

  it('gives every node the colours of its state', async () => {
    const svg = await draw(graphOf(names(7), []), [0, 1, 2, 3, 4, 5, 6]);
    const drawn = [
      ...svg.matchAll(/<g class="(\w+)"><title>node (\d)[^<]*<\/title><rect [^>]*fill="([^"]+)" stroke="([^"]+)"/g),
    ];
    expect(drawn.map(([, state, node, ...colours]) => [Number(node), state, colours])).toEqual(
      STATE_NAMES.map((state, node) => [node, state, [...COLOURS[state]!]]),
    );
  });

  it('escapes ids, cuts long ones, and makes room for wide characters', async () => {
    const ids = ['a<b>&"c"', 'bell\u0007 half\ud800', 'y'.repeat(60), '日本語のノード', 'abcdefg'];
    const svg = await draw(graphOf(ids, [[0, 1]]));
    expect(svg).toContain('<title>a&#60;b&#62;&#38;&#34;c&#34;: blocked</title>');
    expect(svg).toContain('>a&#60;b&#62;&#38;&#34;c&#34;</text>');
    expect(svg).toContain('>bell\ufffd half\ufffd</text>');
    expect(svg).toContain(`<title>${'y'.repeat(60)}: blocked</title>`);
    expect(svg).toContain(`>${'y'.repeat(27)}…</text>`);
    const { boxes } = parse(svg);
    expect(boxes[3]!.width - 20).toBeCloseTo(2 * (boxes[4]!.width - 20), 0);
  });

  it('is refused before the flow runs when it is too large, with the limit in the message', () => {
    const here = place();
    const chain = (size: number) =>
      Object.fromEntries(
        Array.from({ length: size }, (_, i) => [`n${i}`, { run: 'touch ran', needs: i === 0 ? [] : [`n${i - 1}`] }]),
      );
    here.write('f.json', { nodes: chain(1_001) });
    const { status, stderr } = here.crore('run', 'f.json', '--graph', 'x.svg');
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: 'crore: --graph: 1001 nodes are too many for an .svg (at most 1000): write a .dot or .mmd file instead\n',
    });
    expect(here.names).toEqual(['f.json']);
    const all = (count: number) =>
      names(count).flatMap((_, i) => Array.from({ length: count - 1 - i }, (_, k): Edge => [i, i + 1 + k]));
    expect(() => checkExport(graphOf(names(80), all(80)), 'x.svg')).toThrow('3160 edges are too many');
    expect(() => checkExport(graphOf(names(60), all(60)), 'x.svg')).toThrow('pieces of edges are too many');
    expect(() => checkExport(graphOf(names(60), all(60)), 'x.dot')).not.toThrow();
    const from = new Int32Array(0);
    const ids = names(20_001);
    const large = { name: 'x', ids, specs: [], index: new Map(), from, to: from, policies: new Uint8Array(0) };
    expect(() => checkExport(makeGraph(large), 'x.dot')).toThrow('20001 nodes are too many to draw (at most 20000)');
  });

  it('of a thousand nodes in a chain is drawn', async () => {
    const edges = Array.from({ length: 999 }, (_, i): Edge => [i, i + 1]);
    const { boxes, lines } = parse(await draw(graphOf(names(1_000), edges)));
    expect([boxes.length, lines.length]).toEqual([1_000, 999]);
  });
});
