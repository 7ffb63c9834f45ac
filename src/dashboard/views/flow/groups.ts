import { FAILED, RUNNING, STATE_NAMES } from '../../../flow/graph/node-spec.js';
import type { NodeGroups } from '../../../flow/report/node-groups.js';
import type { FlowNode, NodeState } from '../../api.js';
import { criticalNodes, type NodeFacts, NodeWriter, type Picture } from './nodes.js';

/** Most nodes of each kind that are shown on their own: those that failed, and those that run. */
const MOST_ALONE = 150;
/** Most edges between groups; beyond, those that stand for the fewest are left out. */
const MOST_EDGES = 5_000;
/** What a group is called if it has nodes in several states: the first of these. */
const URGENCY: readonly NodeState[] = ['failed', 'running', 'ready', 'blocked', 'skipped', 'cancelled', 'done'];

/** Large graphs: nodes that look alike are one, except those that somebody wants to see. */
export function groupedPicture(facts: NodeFacts, groups: NodeGroups): Picture {
  const { graph } = facts.watched;
  const shownAs = Int32Array.from(groups.of);
  const nodes: FlowNode[] = groups.labels.map((id, group) => emptyGroup(id, groups.layers[group]!));
  const writer = new NodeWriter(facts);
  for (const node of alone(facts.states)) shownAs[node] = nodes.push(writer.node(node, groups.shownLayers[node]!)) - 1;
  for (let node = 0; node < graph.ids.length; node++) {
    const shown = nodes[shownAs[node]!]!;
    if (shown.size !== undefined) addTo(shown, facts, node);
  }
  for (const shown of nodes) if (shown.size) finish(shown);
  const renumbered = withoutEmpty(nodes);
  const place = (node: number): number => renumbered[shownAs[node]!]!;
  const [edges, leftOut] = mergedEdges(facts, place, nodes, shownAs);
  const criticalPath = [...new Set(criticalNodes(facts).map(place))];
  const picture = { nodes: nodes.filter(({ size }) => size !== 0), edges, criticalPath };
  return leftOut > 0 ? { ...picture, edgesLeftOut: leftOut } : picture;
}

function emptyGroup(id: string, layer: number): FlowNode {
  return { id, layer, state: 'done', size: 0, counts: {} };
}

/** Nodes that are shown on their own. */
function* alone(states: Uint8Array): Generator<number> {
  for (const state of [FAILED, RUNNING]) {
    let count = 0;
    for (let node = states.indexOf(state); node >= 0 && count < MOST_ALONE; node = states.indexOf(state, node + 1)) {
      count++;
      yield node;
    }
  }
}

/** The times of a group reach from its first start to its last end. */
function addTo(group: FlowNode, { watched, states }: NodeFacts, node: number): void {
  const state = STATE_NAMES[states[node]!]!;
  group.size!++;
  group.counts![state] = (group.counts![state] ?? 0) + 1;
  if (watched.ended[node] === 0) return;
  const start = watched.starts[node]!;
  const last = Math.max(start + watched.seconds[node]! * 1_000, lastOf(group) ?? 0);
  group.start = Math.min(start, group.start ?? start);
  group.seconds = (last - group.start) / 1_000;
}

function lastOf({ start, seconds }: FlowNode): number | undefined {
  return start === undefined ? undefined : start + (seconds ?? 0) * 1_000;
}

function finish(group: FlowNode): void {
  group.state = URGENCY.find((state) => group.counts![state]) ?? 'done';
}

/** The index of each node after groups without nodes are left out. */
function withoutEmpty(nodes: readonly FlowNode[]): Int32Array {
  let next = 0;
  return Int32Array.from(nodes, ({ size }) => (size === 0 ? -1 : next++));
}

/** Edges between different groups, each once; within a merged layer there are none. */
function mergedEdges(
  { watched: { graph } }: NodeFacts,
  place: (node: number) => number,
  nodes: readonly FlowNode[],
  shownAs: Int32Array,
): [edges: number[], leftOut: number] {
  const layerOf = (node: number): number => nodes[shownAs[node]!]!.layer;
  const counts = new Map<number, number>();
  for (let to = 0; to < graph.ids.length; to++) {
    for (let e = graph.upAt[to]!; e < graph.upAt[to + 1]!; e++) {
      if (layerOf(graph.ups[e]!) >= layerOf(to)) continue;
      const key = place(graph.ups[e]!) * nodes.length + place(to);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  const kept = [...counts].sort((a, b) => b[1] - a[1]).slice(0, MOST_EDGES);
  const edges = kept.flatMap(([key]) => [Math.floor(key / nodes.length), key % nodes.length]);
  return [edges, counts.size - kept.length];
}
