import { CroreError } from '../../errors.js';
import { type Graph, makeGraph } from './graph.js';
import type { NeedPolicy, NodeSpec } from './node-spec.js';

/** The position of a definition: `file:line`, or something else that helps to find it. */
export type Place = string | (() => string);

export function placeText(place: Place): string {
  return typeof place === 'function' ? place() : place;
}

export function badFlow(place: Place, message: string): CroreError {
  return new CroreError('BAD_FLOW', `${placeText(place)}: ${message}`);
}

interface Settings {
  name: string;
  env?: Readonly<Record<string, string>>;
  tokens?: Readonly<Record<string, number>>;
}

/**
 * A flow as it is read: nodes and edges in any order, edges by name. All input formats use it, so that there is one
 * validator; `finish` is the only way to get a graph.
 */
export class GraphBuilder {
  readonly ids: string[] = [];
  readonly specs: NodeSpec[] = [];
  readonly #index = new Map<string, number>();
  readonly #from: string[] = [];
  readonly #to: string[] = [];
  readonly #policies: NeedPolicy[] = [];
  /** Finds the position of a node, or of one of its edges, for an error message. */
  #places: (id: string, need?: string) => string;

  constructor(places: (id: string, need?: string) => string) {
    this.#places = places;
  }

  node(id: string, spec: NodeSpec, place?: Place): void {
    const at = place ?? (() => this.#places(id));
    if (id === '') throw badFlow(at, 'a node has an empty id');
    if (id.length > 512) throw badFlow(at, `node id '${id.slice(0, 40)}…' is longer than 512 characters`);
    if (/[\0\n\r]/.test(id)) throw badFlow(at, `node id ${JSON.stringify(id)} contains a NUL or a line break`);
    if (this.#index.has(id)) throw badFlow(at, `duplicate node '${id}'`);
    this.#index.set(id, this.ids.length);
    this.ids.push(id);
    this.specs.push(spec);
  }

  has(id: string): boolean {
    return this.#index.has(id);
  }

  edge(from: string, to: string, policy: NeedPolicy = 'success'): void {
    this.#from.push(from);
    this.#to.push(to);
    this.#policies.push(policy);
  }

  /** Checks names, self edges and cycles; throws BAD_FLOW with the first error and its position. */
  finish(settings: Settings): Graph {
    const count = this.#from.length;
    const from = new Int32Array(count);
    const to = new Int32Array(count);
    const policies = new Uint8Array(count);
    for (let i = 0; i < count; i++) {
      const [up, down] = [this.#from[i]!, this.#to[i]!];
      const place = () => this.#places(down, up);
      if (up === down) throw badFlow(place, `node '${up}' needs itself: ${up} -> ${up}`);
      from[i] = this.#known(up, down, place);
      to[i] = this.#known(down, up, place);
      policies[i] = this.#policies[i] === 'finished' ? 1 : 0;
    }
    const graph = makeGraph({ ...settings, ids: this.ids, specs: this.specs, index: this.#index, from, to, policies });
    const cycle = graph.cycle;
    if (cycle) {
      const names = cycle.map((node) => this.ids[node]!);
      // The edge that closes the cycle is defined where its downstream node lists its needs.
      throw badFlow(
        () => this.#places(names[0]!, names.at(-1)),
        `dependency cycle: ${[...names, names[0]].join(' -> ')}`,
      );
    }
    return graph;
  }

  #known(id: string, other: string, place: Place): number {
    const index = this.#index.get(id);
    if (index === undefined) throw badFlow(place, `unknown node '${id}' in the edge with '${other}'`);
    return index;
  }
}
