import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { FlowNode } from '../../api.js';
import { plural } from '../lib/format.js';
import { type Box, HEIGHT, type Layout, labelOf, sizeOf, useLayout } from './layout.js';
import { keyOf, type PictureProps } from './pictures.js';
import { NODE_STATES, SIGNS } from './states.js';
import { useViewport, type Viewport } from './viewport.js';

/** Below this zoom there are no texts. */
const READABLE = 0.55;
/** With more nodes in view, Tab does not stop at each of them. */
const MOST_STOPS = 300;

interface Area {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** The graph from left to right: a node is to the right of everything it needs. */
export function Graph({ view, marked, chosen, wanted, index, onChoose }: PictureProps) {
  const { nodes, edges } = view;
  const layout = useLayout(nodes, edges);
  const place = useRef<HTMLDivElement>(null);
  const { viewport, size, fit, zoom, center, onKeyDown, dragged } = useViewport(place, layout);
  const readable = viewport.k >= READABLE;
  const area = useArea(viewport, size, readable);
  const drawn = useMemo(
    () =>
      layout && (
        <>
          <Edges layout={layout} edges={edges} marked={marked} area={area} />
          {readable ? (
            <Nodes layout={layout} nodes={nodes} marked={marked} chosen={chosen} area={area} />
          ) : (
            <FarNodes layout={layout} nodes={nodes} marked={marked} chosen={chosen} area={area} />
          )}
        </>
      ),
    [layout, nodes, edges, marked, chosen, area, readable],
  );
  useEffect(() => {
    const at = wanted && index.get(wanted.key);
    const box = at === undefined ? undefined : layout?.boxes[at];
    if (box && size.width > 0) center(box.x + box.width / 2, box.y + HEIGHT / 2);
  }, [wanted?.turn, layout !== undefined, size.width > 0]);
  const onClick = (event: MouseEvent) => {
    const { left, top } = place.current!.getBoundingClientRect();
    const { x, y, k } = viewport;
    const at = nodeIn(event) ?? nodeAt(layout, (event.clientX - left - x) / k, (event.clientY - top - y) / k);
    if (at !== undefined && !dragged() && !isButton(event)) onChoose(keyOf(nodes[at]!));
  };
  const onKey = (event: KeyboardEvent) => {
    const at = event.key === 'Enter' || event.key === ' ' ? nodeIn(event) : undefined;
    if (at === undefined) return onKeyDown(event);
    event.preventDefault();
    onChoose(keyOf(nodes[at]!));
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the nodes in it are buttons
    <div ref={place} class="graph card" onClick={onClick} onKeyDown={onKey}>
      {/* biome-ignore lint/a11y/useSemanticElements: a drawing has no field sets */}
      <svg
        class="graph-svg"
        role="group"
        // In a drawing, the names of attributes are in lower case.
        tabindex={0}
        aria-label={`Graph with ${plural(nodes.length, 'node')}. Arrow keys move it, plus and minus zoom, 0 shows all. The Gantt tab has the same as a table.`}
      >
        <g transform={`translate(${viewport.x} ${viewport.y}) scale(${viewport.k})`}>{drawn}</g>
      </svg>
      <div class="graph-buttons">
        <button type="button" class="button small" aria-label="Zoom in" onClick={() => zoom(1.3)}>
          +
        </button>
        <button type="button" class="button small" aria-label="Zoom out" onClick={() => zoom(1 / 1.3)}>
          −
        </button>
        <button type="button" class="button small" onClick={fit}>
          Fit
        </button>
      </div>
    </div>
  );
}

/** The part that is drawn: what is in view and as much around it. It stays the same while the view is well within it. */
function useArea({ x, y, k }: Viewport, { width, height }: { width: number; height: number }, fine: boolean): Area {
  const last = useRef<Area & { k: number; fine: boolean }>(undefined);
  const seen = { left: -x / k, top: -y / k, right: (width - x) / k, bottom: (height - y) / k };
  const { current } = last;
  const within =
    current &&
    seen.left >= current.left &&
    seen.top >= current.top &&
    seen.right <= current.right &&
    seen.bottom <= current.bottom;
  if (within && fine === current.fine && k < current.k * 1.5) return current;
  const [wide, high] = [(width / k) * 0.2, (height / k) * 0.2];
  last.current = {
    left: seen.left - wide,
    top: seen.top - high,
    right: seen.right + wide,
    bottom: seen.bottom + high,
    k,
    fine,
  };
  return last.current;
}

interface EdgesProps {
  layout: Layout;
  edges: readonly number[];
  marked: ReadonlySet<number>;
  area: Area;
}

/** One path for all edges of a kind: thousands of elements would be slow. */
function Edges({ layout, edges, marked, area }: EdgesProps) {
  let [plain, critical] = ['', ''];
  layout.paths.forEach((path, e) => {
    const [from, to] = [edges[2 * e]!, edges[2 * e + 1]!];
    if (!crosses(layout.boxes[from]!, layout.boxes[to]!, area)) return;
    if (marked.has(from) && marked.has(to)) critical += path;
    else plain += path;
  });
  return (
    <>
      <path class="edge" d={plain} />
      <path class="edge critical" d={critical} />
    </>
  );
}

interface NodesProps {
  layout: Layout;
  nodes: readonly FlowNode[];
  marked: ReadonlySet<number>;
  chosen: number | undefined;
  area: Area;
}

/** From afar, boxes without texts: one path for all nodes of a state, because there may be thousands. */
function FarNodes({ layout, nodes, marked, chosen, area }: NodesProps) {
  const paths = new Map<string, string>();
  nodes.forEach(({ state }, i) => {
    const box = layout.boxes[i]!;
    if (!crosses(box, box, area)) return;
    const path = `M${box.x} ${box.y}h${box.width}v${HEIGHT}h${-box.width}z`;
    const kinds = [`far-node node-${state}`];
    if (marked.has(i)) kinds.push('far-node critical');
    if (chosen === i) kinds.push('far-node chosen');
    for (const kind of kinds) paths.set(kind, (paths.get(kind) ?? '') + path);
  });
  return (
    <>
      {[...paths].map(([kind, path]) => (
        <path key={kind} class={kind} d={path} />
      ))}
    </>
  );
}

function Nodes({ layout, nodes, marked, chosen, area }: NodesProps) {
  const shown = nodes.flatMap((_node, i) => (crosses(layout.boxes[i]!, layout.boxes[i]!, area) ? [i] : []));
  const stops = shown.length <= MOST_STOPS;
  return (
    <>
      {shown.map((i) => (
        <Node
          key={keyOf(nodes[i]!)}
          node={nodes[i]!}
          at={i}
          box={layout.boxes[i]!}
          mark={`${marked.has(i) ? ' critical' : ''}${chosen === i ? ' chosen' : ''}`}
          stop={stops}
        />
      ))}
    </>
  );
}

interface NodeProps {
  node: FlowNode;
  at: number;
  box: Box;
  mark: string;
  stop: boolean;
}

function Node({ node, at, box, mark, stop }: NodeProps) {
  const { state, size } = node;
  const name = `${node.id}${sizeOf(size)}: ${state}`;
  return (
    // biome-ignore lint/a11y/useSemanticElements: there are no buttons in a drawing
    <g
      class={`node node-${state}${mark}`}
      transform={`translate(${box.x} ${box.y})`}
      role="button"
      tabindex={stop ? 0 : -1}
      aria-label={name}
      data-node={at}
    >
      <title>{name}</title>
      {size !== undefined && <rect class="stack" x="4" y="4" width={box.width} height={HEIGHT} rx="6" />}
      <rect width={box.width} height={HEIGHT} rx="6" />
      {node.counts && size !== undefined && <GroupBar counts={node.counts} size={size} width={box.width} />}
      <text class="sign" x="10" y="20">
        {SIGNS[state]}
      </text>
      <text x="28" y="20">
        {labelOf(node)}
      </text>
    </g>
  );
}

/** How far a group has come, at the bottom of its box. */
function GroupBar({ counts, size, width }: { counts: NonNullable<FlowNode['counts']>; size: number; width: number }) {
  let x = 6;
  return (
    <>
      {NODE_STATES.filter((state) => counts[state]).map((state) => {
        const part = ((width - 12) * counts[state]!) / size;
        x += part;
        return <rect key={state} class={`part fill-${state}`} x={x - part} y={HEIGHT - 5} width={part} height="3" />;
      })}
    </>
  );
}

/** The node of the element that an event is about. */
function nodeIn(event: Event): number | undefined {
  const found = (event.target as Element).closest('[data-node]')?.getAttribute('data-node');
  return found ? Number(found) : undefined;
}

function nodeAt(layout: Layout | undefined, x: number, y: number): number | undefined {
  const found = layout?.boxes.findIndex(
    (box) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + HEIGHT,
  );
  return found === undefined || found < 0 ? undefined : found;
}

function isButton(event: Event): boolean {
  return (event.target as Element).closest('.graph-buttons') !== null;
}

function crosses(from: Box, to: Box, area: Area): boolean {
  return (
    to.x + to.width >= area.left &&
    from.x <= area.right &&
    Math.max(from.y, to.y) + HEIGHT >= area.top &&
    Math.min(from.y, to.y) <= area.bottom
  );
}
