import type { Graph } from '../../../flow/graph/graph.js';
import { DONE, FAILED, type NodeEnd } from '../../../flow/graph/node-spec.js';
import type { Journal } from '../../../flow/journal/journal.js';
import { sketchGraph } from '../../../flow/journal/stored-graph.js';
import { layersOf } from '../../../flow/report/layers.js';
import { groupNodes, type NodeGroups } from '../../../flow/report/node-groups.js';

/** An end without the value, which may be large. */
export type EndShown = Omit<NodeEnd, 'value' | 'worker' | 'slot' | 'cached'>;

/** Up to this many nodes are shown as they are. */
export const MOST_NODES = 2_000;

/** How the parts of a node with a map have ended so far. */
export interface PartCounts {
  done: number;
  failed: number;
}

/** A flow somebody looks at: its graph, and the ends read so far; only new ends are read again. */
export class WatchedGraph {
  /** By node, as everything here. */
  readonly ends = new Map<number, EndShown>();
  /** The same by node, for passes over all of them: the state, the start, and the seconds. */
  readonly ended: Uint8Array;
  readonly starts: Float64Array;
  readonly seconds: Float64Array;
  readonly parts = new Map<number, PartCounts>();
  readonly #failedParts = new Set<string>();
  #position = 0;
  #groups: NodeGroups | undefined;
  #reading: Promise<void> | undefined;

  private constructor(
    readonly id: string,
    readonly graph: Graph,
    readonly layers: Int32Array,
  ) {
    const size = graph.ids.length;
    this.ended = new Uint8Array(size);
    this.starts = new Float64Array(size);
    this.seconds = new Float64Array(size);
  }

  /** Throws if the stored text is no graph. */
  static from(id: string, definition: string): WatchedGraph {
    const graph = sketchGraph(definition);
    if (graph.cycle) throw new Error('its definition has a cycle');
    return new WatchedGraph(id, graph, layersOf(graph));
  }

  /** Changes with every recorded end. */
  get position(): number {
    return this.#position;
  }

  get groups(): NodeGroups | undefined {
    if (this.graph.ids.length <= MOST_NODES) return undefined;
    this.#groups ??= groupNodes(this.graph, this.layers);
    return this.#groups;
  }

  /** Reads what has ended since the last time. */
  update(journal: Journal): Promise<void> {
    this.#reading ??= this.#read(journal).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** The node of an id, or the node with a map whose part has that id. */
  nodeOf(id: string): number | undefined {
    const node = this.graph.index.get(id);
    return node ?? this.graph.index.get(id.replace(/\[\d+\]$/, ''));
  }

  async #read(journal: Journal): Promise<void> {
    const { ends, position } = await journal.endsAfter(this.id, this.#position);
    for (const end of ends) this.#add(end);
    this.#position = position;
  }

  #add({ id, state, attempts, start, seconds, exit, error, output }: NodeEnd): void {
    const node = this.graph.index.get(id);
    if (node === undefined) {
      this.#addPart(id, state);
      return;
    }
    this.ends.set(node, { id, state, attempts, start, seconds, exit, error, output });
    this.ended[node] = state === 'done' ? DONE : FAILED;
    this.starts[node] = start;
    this.seconds[node] = seconds;
  }

  /** A part that failed may be done when the flow is resumed. */
  #addPart(id: string, state: 'done' | 'failed'): void {
    const node = this.nodeOf(id);
    if (node === undefined) return;
    const counts = this.parts.get(node) ?? { done: 0, failed: 0 };
    this.parts.set(node, counts);
    if (this.#failedParts.delete(id)) counts.failed--;
    counts[state]++;
    if (state === 'failed') this.#failedParts.add(id);
  }
}
