import type { FlowNode, FlowView } from '../../api.js';

/** What both pictures of a flow are given. */
export interface PictureProps {
  view: FlowView;
  /** Nodes of the critical path, if they are to be marked. */
  marked: ReadonlySet<number>;
  /** The node that the panel shows. */
  chosen: number | undefined;
  wanted: Wanted | undefined;
  /** The index of each node by its key. */
  index: ReadonlyMap<string, number>;
  onChoose: (key: string) => void;
}

/** A node that somebody asked for by name: it is brought into view. */
export interface Wanted {
  key: string;
  /** Another number each time. */
  turn: number;
}

/** Identifies a node from one view to the next; groups of different layers may have the same name. */
export function keyOf({ id, layer, size }: FlowNode): string {
  return size === undefined ? id : `${layer}/${id}`;
}
