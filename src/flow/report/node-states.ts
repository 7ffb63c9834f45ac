import type { Graph } from '../graph/graph.js';
import { BLOCKED, CANCELLED, DONE, FAILED, isEnd, type NodeEnd, READY, RUNNING, SKIPPED } from '../graph/node-spec.js';

export interface KnownStates {
  /** By node: `DONE` or `FAILED` if its end is recorded, else `BLOCKED`. */
  ended: Uint8Array;
  /** Nodes that run now. */
  running?: Iterable<number>;
  /** The flow has ended: nodes that have not are cancelled. */
  over?: boolean;
}

/** The node states that follow from the recorded ends. */
export function nodeStates(graph: Graph, { ended, running = [], over = false }: KnownStates): Uint8Array {
  const states = Uint8Array.from(ended);
  for (const node of running) if (!isEnd(states[node]!)) states[node] = RUNNING;
  inferDone(graph, states);
  for (const node of graph.order) if (states[node] === BLOCKED) states[node] = stateOf(graph, states, node, over);
  return states;
}

/** The ends as `nodeStates` wants them; for the same node, the latest counts. */
export function endedNodes(graph: Graph, ends: readonly NodeEnd[]): Uint8Array {
  const ended = new Uint8Array(graph.ids.length);
  for (const { id, state } of ends) {
    const node = graph.index.get(id);
    if (node !== undefined) ended[node] = state === 'done' ? DONE : FAILED;
  }
  return ended;
}

/** The end of a cached node is not recorded: that a node which needs its success has started shows that it is done. */
function inferDone({ order, upAt, ups, upPolicies }: Graph, states: Uint8Array): void {
  for (let i = order.length - 1; i >= 0; i--) {
    const node = order[i]!;
    if (states[node] === BLOCKED) continue;
    for (let e = upAt[node]!; e < upAt[node + 1]!; e++)
      if (upPolicies[e] === 0 && states[ups[e]!] === BLOCKED) states[ups[e]!] = DONE;
  }
}

/** The state of a node that has not started; its upstream nodes have theirs. */
function stateOf({ upAt, ups, upPolicies }: Graph, states: Uint8Array, node: number, over: boolean): number {
  let ready = true;
  let cancelled = false;
  for (let e = upAt[node]!; e < upAt[node + 1]!; e++) {
    const up = states[ups[e]!]!;
    if (!isEnd(up)) ready = false;
    else if (up === DONE || upPolicies[e] === 1) continue;
    else if (up === CANCELLED) cancelled = true;
    else return SKIPPED;
  }
  if (cancelled || over) return CANCELLED;
  return ready ? READY : BLOCKED;
}
