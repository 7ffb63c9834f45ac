import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { FlowNode } from '../../api.js';
import { plural } from '../lib/format.js';
import { type Box, HEIGHT, type Layout, labelOf, useLayout } from './layout.js';
import { keyOf, type PictureProps } from './pictures.js';
import { NODE_STATES, SIGNS } from './states.js';
import { useViewport, type Viewport } from './viewport.js';

/** Below this zoom there are no texts. */
const READABLE = 0.4;
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
  const area = useArea(viewport, size);
  const drawn = useMemo(
    () =>
      layout && (
        <>
          <Edges layout={layout} edges={edges} marked={marked} area={area} />
          <Nodes layout={layout} nodes={nodes} marked={marked} chosen={chosen} area={area} readable={readable} />
        </>
      ),
    [layout, nodes, edges, marked, chosen, area, readable],
  );
  useEffect(() => {
    const at = wanted && index.get(wanted.key);
    const box = at === undefined ? undefined : layout?.boxes[at];
    if (box && size.width > 0) center(box.x + box.width / 2, box.y + HEIGHT / 2);
  }, [wanted?.turn, layout !== undefined, size.width > 0]);
  const choose = (event: Event) => {
    const found = (event.target as Element).closest('[data-node]')?.getAttribute('data-node');
    const node = found ? nodes[Number(found)] : undefined;
    if (node && !dragged()) onChoose(keyOf(node));
    return node !== undefined;
  };
  const onKey = (event: KeyboardEvent) => {
    if ((event.key === 'Enter' || event.key === ' ') && choose(event)) event.preventDefault();
    else onKeyDown(event);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the nodes in it are buttons
    <div ref={place} class="graph card" onClick={choose} onKeyDown={onKey}>
      {/* biome-ignore lint/a11y/useSemanticElements: a drawing has no field sets */}
      <svg
        class="graph-svg"
        role="group"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: its keys move and zoom the picture
        tabIndex={0}
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
function useArea({ x, y, k }: Viewport, { width, height }: { width: number; height: number }): Area {
  const last = useRef<Area & { k: number }>(undefined);
  const seen = { left: -x / k, top: -y / k, right: (width - x) / k, bottom: (height - y) / k };
  const { current } = last;
  const within =
    current &&
    seen.left >= current.left &&
    seen.top >= current.top &&
    seen.right <= current.right &&
    seen.bottom <= current.bottom;
  if (within && k < current.k * 2) return current;
  const [wide, high] = [(width / k) * 0.6, (height / k) * 0.6];
  last.current = {
    left: seen.left - wide,
    top: seen.top - high,
    right: seen.right + wide,
    bottom: seen.bottom + high,
    k,
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
  readable: boolean;
}

function Nodes({ layout, nodes, marked, chosen, area, readable }: NodesProps) {
  const shown = nodes.flatMap((_node, i) => (crosses(layout.boxes[i]!, layout.boxes[i]!, area) ? [i] : []));
  const stops = readable && shown.length <= MOST_STOPS;
  return (
    <>
      {shown.map((i) => (
        <Node
          key={keyOf(nodes[i]!)}
          node={nodes[i]!}
          at={i}
          box={layout.boxes[i]!}
          mark={`${marked.has(i) ? ' critical' : ''}${chosen === i ? ' chosen' : ''}`}
          readable={readable}
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
  readable: boolean;
  stop: boolean;
}

function Node({ node, at, box, mark, readable, stop }: NodeProps) {
  const { state, size } = node;
  const name = `${node.id}: ${state}${size === undefined ? '' : `, ${plural(size, 'node')}`}`;
  return (
    // biome-ignore lint/a11y/useSemanticElements: there are no buttons in a drawing
    <g
      class={`node node-${state}${mark}`}
      transform={`translate(${box.x} ${box.y})`}
      role="button"
      tabIndex={stop ? 0 : -1}
      aria-label={name}
      data-node={at}
    >
      {readable && <title>{name}</title>}
      {size !== undefined && <rect class="stack" x="4" y="4" width={box.width} height={HEIGHT} rx="6" />}
      <rect width={box.width} height={HEIGHT} rx="6" />
      {node.counts && size !== undefined && <GroupBar counts={node.counts} size={size} width={box.width} />}
      {readable && (
        <>
          <text class="sign" x="10" y="20">
            {SIGNS[state]}
          </text>
          <text x="28" y="20">
            {labelOf(node)}
          </text>
        </>
      )}
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

function crosses(from: Box, to: Box, area: Area): boolean {
  return (
    to.x + to.width >= area.left &&
    from.x <= area.right &&
    Math.max(from.y, to.y) + HEIGHT >= area.top &&
    Math.min(from.y, to.y) <= area.bottom
  );
}
