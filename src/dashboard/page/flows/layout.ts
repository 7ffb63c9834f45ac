/** Where the nodes of a flow stand in the picture. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { FlowNode } from '../../api.js';
import { count } from '../lib/format.js';
import { placeByLayers } from './layers.js';
import { keyOf } from './pictures.js';

export interface Box {
  x: number;
  y: number;
  width: number;
}

/** Boxes by node with their upper left corners, and the paths of edges, by edge. */
export interface Layout {
  width: number;
  height: number;
  boxes: Box[];
  paths: string[];
}

export const HEIGHT = 30;
const [LETTER, LONGEST, BESIDE] = [6.6, 26, 38];
/** What the library lays out in about a tenth of a second; beyond, nodes are placed by their layers. */
const MOST = { nodes: 120, edges: 240 };

/** The text in a box: control characters and what does not fit are left out. */
export function labelOf({ id, size }: FlowNode): string {
  let width = 0;
  let label = '';
  for (const char of id) {
    width += char.codePointAt(0)! > 0x10ff ? 2 : 1;
    if (width > LONGEST) return `${label}…${sizeOf(size)}`;
    label += char;
  }
  return label + sizeOf(size);
}

/** How many nodes a group stands for. */
export function sizeOf(size: number | undefined): string {
  return size === undefined ? '' : ` ×${count(size)}`;
}

export function widthOf(node: FlowNode): number {
  let width = 0;
  for (const char of labelOf(node)) width += char.codePointAt(0)! > 0x10ff ? 2 : 1;
  return Math.max(60, Math.round(width * LETTER) + BESIDE);
}

/** Undefined while the library is loaded. Laid out again only if the graph changes, not with the states. */
export function useLayout(nodes: readonly FlowNode[], edges: readonly number[]): Layout | undefined {
  const shape = useMemo(() => shapeOf(nodes, edges), [nodes, edges]);
  const large =
    nodes.length > MOST.nodes || edges.length > 2 * MOST.edges || nodes.some(({ size }) => size !== undefined);
  const placed = useMemo(() => (large ? placeByLayers(nodes, edges) : undefined), [shape]);
  const [drawn, setDrawn] = useState<{ shape: string; layout: Layout }>();
  useEffect(() => {
    if (large) return;
    let gone = false;
    void import('./library-layout.js').then(
      ({ layOutSmall }) => !gone && setDrawn({ shape, layout: layOutSmall(nodes, edges) }),
      () => !gone && setDrawn({ shape, layout: placeByLayers(nodes, edges) }),
    );
    return () => {
      gone = true;
    };
  }, [shape]);
  return placed ?? (drawn?.shape === shape ? drawn.layout : undefined);
}

function shapeOf(nodes: readonly FlowNode[], edges: readonly number[]): string {
  return `${nodes.map(keyOf).join('\n')}\n${edges.join()}`;
}
