import { isEnd, STATE_NAMES, type Work } from '../../../flow/graph/node-spec.js';
import type { RunningNode, WatchedFlow } from '../../../flow/journal/journal.js';
import { longestChain } from '../../../flow/report/layers.js';
import { nodeStates } from '../../../flow/report/node-states.js';
import type { FlowNode, FlowView, NodeState } from '../../api.js';
import type { WatchedGraph } from './watched-graph.js';

export type Counts = Partial<Record<NodeState, number>>;

/** Everything that is known about the nodes of a flow at one moment. */
export interface NodeFacts {
  watched: WatchedGraph;
  states: Uint8Array;
  /** Nodes that run, with what their runner says. */
  running: ReadonlyMap<number, RunningNode>;
  /** Parts of nodes with a map that run, by node. */
  runningParts: ReadonlyMap<number, number>;
}

export function factsOf(watched: WatchedGraph, flow: WatchedFlow, reported: readonly RunningNode[]): NodeFacts {
  const running = new Map<number, RunningNode>();
  const runningParts = new Map<number, number>();
  for (const one of flow.held ? reported : []) {
    const node = watched.nodeOf(one.id);
    if (node === undefined) continue;
    if (watched.graph.ids[node] !== one.id) runningParts.set(node, (runningParts.get(node) ?? 0) + 1);
    const known = running.get(node);
    // Of the parts of a node, the one that started first says since when it runs.
    if (!known || (one.start ?? Number.POSITIVE_INFINITY) < (known.start ?? 0)) running.set(node, one);
  }
  const over = !flow.held && flow.info.state !== 'running';
  const states = nodeStates(watched.graph, { ended: watched.ended, running: running.keys(), over });
  // Cached nodes have no recorded end; a flow that is done shows that they are.
  if (over && flow.info.state === 'done') states.fill(STATE_NAMES.indexOf('done'));
  return { watched, states, running, runningParts };
}

export function countStates(states: Uint8Array): Counts {
  const sums = new Uint32Array(STATE_NAMES.length);
  for (const state of states) sums[state]!++;
  const counts: Counts = {};
  for (const [state, name] of STATE_NAMES.entries()) if (sums[state]! > 0) counts[name] = sums[state]!;
  return counts;
}

/** Longest texts: of a command, of an error, and of all errors and outputs of one answer together. */
const [WORK, ERROR, DETAILS] = [300, 2_000, 500_000];

/** Describes nodes, with errors and output until there are too many of them for one answer. */
export class NodeWriter {
  #left = DETAILS;

  constructor(private readonly facts: NodeFacts) {}

  node(node: number, layer: number): FlowNode {
    const { watched, states, running } = this.facts;
    const id = watched.graph.ids[node]!;
    const shown: FlowNode = {
      id,
      state: STATE_NAMES[states[node]!]!,
      layer,
      work: workText(watched.graph.specs[node]!.work),
    };
    const end = watched.ends.get(node);
    const now = running.get(node);
    if (isEnd(states[node]!) && end) {
      Object.assign(shown, { start: end.start, seconds: end.seconds, attempts: end.attempts, exit: end.exit });
      this.#details(shown, end.error, end.output);
    } else if (now) {
      if (now.start !== undefined) shown.start = now.start;
      if (now.attempt !== undefined && now.id === id) shown.attempts = now.attempt;
    }
    const items = this.#items(node);
    if (items) shown.items = items;
    return shown;
  }

  #details(shown: FlowNode, error: string | undefined, output: string | undefined): void {
    if (error) {
      shown.error = clip(error, this.#left > 0 ? ERROR : WORK);
      this.#left -= shown.error.length;
    }
    if (output && this.#left > 0) {
      shown.output = output;
      this.#left -= output.length;
    }
  }

  #items(node: number): Counts | undefined {
    const { watched, runningParts } = this.facts;
    const parts = watched.parts.get(node);
    const running = runningParts.get(node) ?? 0;
    if (!parts && running === 0) return undefined;
    const counts: Counts = { running, ...parts };
    return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
  }
}

export function clip(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}

function workText(work: Work): string {
  if (work.kind === 'queue') return `a job for ${clip(work.queue, WORK)}`;
  if (work.kind === 'function') return 'a function';
  const line = typeof work.run === 'string' ? work.run.trim() : work.run.join(' ');
  return clip(line.replace(/\s+/g, ' '), WORK);
}

/** The nodes of the longest chain, by what they took. */
export function criticalNodes({ watched }: NodeFacts): number[] {
  return longestChain(watched.graph, watched.seconds);
}

export type Picture = Pick<FlowView, 'nodes' | 'edges' | 'criticalPath' | 'edgesLeftOut'>;

/** Most edges in one answer; beyond, the longest ones are left out. */
const MOST_EDGES = 20_000;

/** Every node as it is. */
export function plainPicture(facts: NodeFacts): Picture {
  const { graph, layers } = facts.watched;
  const writer = new NodeWriter(facts);
  const nodes = graph.ids.map((_id, node) => writer.node(node, layers[node]!));
  let pairs: [from: number, to: number][] = [];
  for (let to = 0; to < graph.ids.length; to++)
    for (let e = graph.upAt[to]!; e < graph.upAt[to + 1]!; e++) pairs.push([graph.ups[e]!, to]);
  const leftOut = pairs.length - MOST_EDGES;
  const span = ([from, to]: [number, number]) => layers[to]! - layers[from]!;
  if (leftOut > 0) pairs = pairs.sort((a, b) => span(a) - span(b)).slice(0, MOST_EDGES);
  const picture = { nodes, edges: pairs.flat(), criticalPath: criticalNodes(facts) };
  return leftOut > 0 ? { ...picture, edgesLeftOut: leftOut } : picture;
}
