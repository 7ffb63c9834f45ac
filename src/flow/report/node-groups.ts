import type { Graph } from '../graph/graph.js';

/** Groups of nodes that are shown as one, for graphs that are too large to show node by node. */
export interface NodeGroups {
  /** The group of each node. */
  of: Int32Array;
  labels: string[];
  layers: number[];
  /** The layer of each node in the picture: layers are merged where there are too many. */
  shownLayers: Int32Array;
}

/** Most groups; the number of layers alone may make this many. */
export const MOST_GROUPS = 400;

/** Nodes of one layer that look alike are a group; how much alike depends on how many groups that makes. */
export function groupNodes(graph: Graph, layers: Int32Array): NodeGroups {
  const likenesses = [pattern, word, (_id: string, node: number) => graph.specs[node]!.work.kind];
  for (const likeness of likenesses) {
    const groups = groupBy(graph, layers, likeness);
    if (groups) return groups;
  }
  const highest = layers.reduce((most, layer) => Math.max(most, layer), 0);
  const step = Math.ceil((highest + 1) / MOST_GROUPS);
  const merged = layers.map((layer) => Math.floor(layer / step));
  const label = (_id: string, node: number) => bandLabel(merged[node]! * step, step, highest);
  return groupBy(graph, merged, label)!;
}

/** Undefined if there are too many. */
function groupBy(
  { ids }: Graph,
  layers: Int32Array,
  label: (id: string, node: number) => string,
): NodeGroups | undefined {
  const groups: NodeGroups = { of: new Int32Array(ids.length), labels: [], layers: [], shownLayers: layers };
  const known = new Map<string, number>();
  for (const [node, id] of ids.entries()) {
    const text = label(id, node);
    const key = `${layers[node]} ${text}`;
    let group = known.get(key);
    if (group === undefined) {
      if (known.size === MOST_GROUPS) return undefined;
      group = groups.labels.push(text) - 1;
      groups.layers.push(layers[node]!);
      known.set(key, group);
    }
    groups.of[node] = group;
  }
  return groups;
}

const LONGEST = 60;

/** `part-17-of-20` and `part-3-of-20` look alike. */
function pattern(id: string): string {
  return id.replace(/\d+/g, '*').slice(0, LONGEST);
}

/** `load:acme` and `load:globex` look alike. */
function word(id: string): string {
  const [start] = /^[\p{L}\p{N}]+/u.exec(id) ?? [''];
  return start === id ? id.slice(0, LONGEST) : `${start.slice(0, LONGEST)}*`;
}

function bandLabel(first: number, step: number, highest: number): string {
  const last = Math.min(first + step - 1, highest);
  return first === last ? `layer ${first + 1}` : `layers ${first + 1} to ${last + 1}`;
}
