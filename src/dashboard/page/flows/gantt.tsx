import type { RefObject } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { FlowNode } from '../../api.js';
import { count, plural } from '../lib/format.js';
import { clock, duration, now } from '../lib/time.js';
import { keyOf, type PictureProps } from './pictures.js';
import { SIGNS } from './states.js';
import { ticksOf } from './ticks.js';
import { useSize } from './viewport.js';

const [ROW, AXIS, AHEAD, MOST_ZOOM, BESIDE] = [26, 28, 12, 400, 12];

const px = (length: number): string => `${Math.round(length * 10) / 10}px`;

interface Scale {
  from: number;
  until: number;
  /** Pixels of the whole time. */
  width: number;
}

/** When each node ran: a row per node, by the time it started. Only rows in view are in the document. */
export function Gantt({ view, marked, chosen, wanted, index, onChoose }: PictureProps) {
  const { nodes } = view;
  const rows = useMemo(() => rowsOf(nodes), [nodes]);
  const place = useRef<HTMLDivElement>(null);
  const size = useSize(place);
  const [scroll, setScroll] = useState({ top: 0, left: 0 });
  const [zoom, setZoom] = useState(1);
  const pointed = usePointed(place);
  const names = size.width < 600 ? 120 : 220;
  const running = nodes.some(({ state, start }) => state === 'running' && start !== undefined);
  const scale = scaleOf(nodes, running ? now.value : 0, Math.max(100, size.width - names - BESIDE) * zoom);
  const first = Math.max(0, Math.floor(scroll.top / ROW) - AHEAD);
  const last = Math.min(rows.length, Math.ceil((scroll.top + size.height) / ROW) + AHEAD);
  /** Scrolls to where a row begins, in time too. */
  const show = (row: number, width: number, top?: number) => {
    const start = nodes[rows[row] ?? -1]?.start ?? scale.from;
    const left = ((start - scale.from) / (scale.until - scale.from)) * width - size.width / 10;
    place.current?.scrollTo(top === undefined ? { left } : { left, top });
  };
  useEffect(() => {
    const row = wanted ? rows.indexOf(index.get(wanted.key) ?? -1) : -1;
    if (row >= 0) show(row, scale.width, row * ROW - size.height / 2);
  }, [wanted?.turn, size.height > 0]);
  const onZoom = (factor: number) => {
    const next = Math.min(MOST_ZOOM, Math.max(1, zoom * factor));
    setZoom(next);
    // The rows in view stay in view.
    requestAnimationFrame(() => show(Math.floor(scroll.top / ROW), (scale.width * next) / zoom));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === '+' || event.key === '=') onZoom(1.5);
    else if (event.key === '-') onZoom(1 / 1.5);
    else if (event.key === '0') onZoom(0);
  };
  if (rows.length === 0) return <p class="muted gantt-none">No node has started yet.</p>;
  const shown = pointed ?? chosen;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys zoom it, and so do the buttons
    <div class="gantt card" onKeyDown={onKeyDown}>
      <div class="gantt-head">
        <span class="muted small-text">
          {plural(rows.length, 'node')} by start
          {rows.length < nodes.length && `, ${count(nodes.length - rows.length)} not started`}
        </span>
        <span class="gantt-details small-text">{shown !== undefined && nodes[shown] && details(nodes[shown])}</span>
        <span class="buttons tight">
          <button type="button" class="button small" aria-label="Zoom in" onClick={() => onZoom(1.5)}>
            +
          </button>
          <button type="button" class="button small" aria-label="Zoom out" onClick={() => onZoom(1 / 1.5)}>
            −
          </button>
          <button type="button" class="button small" onClick={() => onZoom(0)}>
            Fit
          </button>
        </span>
      </div>
      <section
        ref={place}
        class="gantt-place"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        aria-label="Nodes by the time they started, a table"
        onScroll={({ currentTarget }) => setScroll({ top: currentTarget.scrollTop, left: currentTarget.scrollLeft })}
      >
        <table class="gantt-table" aria-rowcount={rows.length + 1} style={{ width: px(names + scale.width + BESIDE) }}>
          <Axis scale={scale} names={names} left={scroll.left} width={size.width} />
          <tbody>
            <Spacer rows={first} />
            {rows.slice(first, last).map((node, i) => (
              <Row
                key={keyOf(nodes[node]!)}
                node={nodes[node]!}
                at={node}
                row={first + i}
                scale={scale}
                mark={`${marked.has(node) ? ' critical' : ''}${chosen === node ? ' chosen' : ''}`}
                onChoose={() => onChoose(keyOf(nodes[node]!))}
              />
            ))}
            <Spacer rows={rows.length - last} />
          </tbody>
        </table>
      </section>
    </div>
  );
}

/** The node whose row has the mouse or the focus. */
function usePointed(place: RefObject<HTMLElement | null>): number | undefined {
  const [pointed, setPointed] = useState<number>();
  useEffect(() => {
    const stop = new AbortController();
    const point = (event: Event) => {
      const row = (event.target as Element).closest('[data-node]');
      setPointed(row ? Number(row.getAttribute('data-node')) : undefined);
    };
    for (const name of ['mouseover', 'focusin']) place.current?.addEventListener(name, point, stop);
    place.current?.addEventListener('mouseleave', () => setPointed(undefined), stop);
    return () => stop.abort();
  }, []);
  return pointed;
}

/** Stands for rows that are not in view. */
function Spacer({ rows }: { rows: number }) {
  if (rows <= 0) return null;
  return (
    <tr style={{ height: px(rows * ROW) }}>
      <td colSpan={2} />
    </tr>
  );
}

/** Nodes that have started, by when they did. */
function rowsOf(nodes: readonly FlowNode[]): number[] {
  const rows = nodes.flatMap(({ start }, node) => (start === undefined ? [] : [node]));
  return rows.sort((a, b) => nodes[a]!.start! - nodes[b]!.start! || a - b);
}

/** From the first start to the last end, or to now while something runs. */
function scaleOf(nodes: readonly FlowNode[], runningUntil: number, width: number): Scale {
  let [from, until] = [Number.POSITIVE_INFINITY, runningUntil];
  for (const { start, seconds } of nodes) {
    if (start === undefined) continue;
    from = Math.min(from, start);
    until = Math.max(until, start + (seconds ?? 0) * 1_000);
  }
  return { from, until: Math.max(until, from + 1), width };
}

function Axis({ scale, names, left, width }: { scale: Scale; names: number; left: number; width: number }) {
  const perMs = scale.width / (scale.until - scale.from);
  const ticks = ticksOf(scale.from + Math.max(0, left - 100) / perMs, scale.from + (left + width) / perMs, 110 / perMs);
  return (
    <thead>
      <tr style={{ height: px(AXIS) }}>
        <th scope="col" class="gantt-name" style={{ width: px(names) }}>
          Node
        </th>
        <th scope="col" class="gantt-times">
          <span class="off-screen">When it ran</span>
          {ticks
            .filter(({ at }) => at <= scale.until)
            .map(({ at, text }) => (
              <span key={at} class="tick" aria-hidden="true" style={{ left: px((at - scale.from) * perMs) }}>
                {text}
              </span>
            ))}
        </th>
      </tr>
    </thead>
  );
}

interface RowProps {
  node: FlowNode;
  at: number;
  row: number;
  scale: Scale;
  mark: string;
  onChoose: () => void;
}

function Row({ node, at, row, scale, mark, onChoose }: RowProps) {
  const { id, state, size } = node;
  const perMs = scale.width / (scale.until - scale.from);
  const left = (node.start! - scale.from) * perMs;
  const ms = node.seconds === undefined ? scale.until - node.start! : node.seconds * 1_000;
  return (
    <tr class={`gantt-row${mark}`} aria-rowindex={row + 2} data-node={at} style={{ height: px(ROW) }}>
      <th scope="row" class="gantt-name">
        <button type="button" title={id} onClick={onChoose}>
          <span class={`sign node-${state}`} aria-hidden="true">
            {SIGNS[state]}
          </span>
          <bdi>{id}</bdi>
          {size !== undefined && <span class="muted">×{count(size)}</span>}
        </button>
      </th>
      <td class="gantt-times">
        <span class={`bar fill-${state}`} style={{ left: px(left), width: px(Math.max(2, ms * perMs)) }} />
        <span class="off-screen">{details(node)}</span>
      </td>
    </tr>
  );
}

function details({ id, state, start, seconds, attempts, error }: FlowNode): string {
  const parts: string[] = [state];
  if (start !== undefined) parts.push(`started ${clock(start)}`);
  if (seconds !== undefined) parts.push(`took ${duration(seconds * 1_000)}`);
  if (attempts !== undefined && attempts > 1) parts.push(`attempt ${attempts}`);
  if (error) parts.push(error.slice(0, 120));
  return `${id.slice(0, 80)}: ${parts.join(', ')}`;
}
