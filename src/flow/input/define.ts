import { CroreError } from '../../errors.js';
import type { Graph } from '../graph/graph.js';
import { GraphBuilder } from '../graph/graph-builder.js';
import type { NeedPolicy, NodeContext, NodeFunction, Work } from '../graph/node-spec.js';
import { checkKeys, type Fields, OPTION_KEYS, readEnv, readNeeds, readOptions, readTokens } from './fields.js';
import { type AnyNode, type Asked, type ItemOf, map, type Needs, type Node, node, type ResultOf } from './nodes.js';

/** Checks nodes that name their upstream nodes: `flow` must contain those nodes, with results of the types they take. */
type Checked<T> = { [K in keyof T]: T[K] extends Node<unknown, infer U> ? Fitting<T, T[K], U> : never };

type Fitting<T, N, U> = unknown extends U
  ? N
  : [U] extends [never]
    ? N
    : [keyof U] extends [keyof T]
      ? ResultsOf<T, keyof U> extends U
        ? N
        : Node<unknown, ResultsOf<T, keyof U>>
      : `there is no node '${Exclude<keyof U, keyof T> & string}' in this flow`;

type ResultsOf<T, K extends keyof T | PropertyKey> = { [P in K]: P extends keyof T ? ResultOf<T[P]> : never };

type IdOf<T> = keyof T & string;
/** An id that is not in use yet. */
type Fresh<T, K extends string> = K extends keyof T ? `duplicate node '${K}'` : K;
/** The needs of a node in a chain: earlier nodes, by id. */
type Earlier<T> = readonly IdOf<T>[] | { readonly [K in IdOf<T>]?: NeedPolicy };
/** Their results; undefined is possible for a node that may have failed. */
type Given<T, N> = N extends readonly (infer K)[]
  ? { [P in K & keyof T]: ResultOf<T[P]> }
  : { [P in keyof N & keyof T]: N[P] extends 'finished' ? ResultOf<T[P]> | undefined : ResultOf<T[P]> };
type With<T, K extends string, N> = { [P in keyof T | K]: P extends keyof T ? T[P] : N };

export interface FlowOptions {
  name?: string;
  env?: Record<string, string>;
  /** Total number of tokens, by name. */
  tokens?: Record<string, number>;
  /** Caches every node that does not set `cache` itself. */
  cache?: boolean;
}

/** A graph of nodes by id. Without nodes, it starts a chain: `flow().node('a', …).node('b', ['a'], …)`. */
export function flow(): Flow<Record<never, never>>;
export function flow<const T extends Record<string, AnyNode>>(nodes: T & Checked<T>, options?: FlowOptions): Flow<T>;
export function flow(nodes = {}, options: FlowOptions = {}): Flow<never> {
  return new Flow(nodes as never, options);
}

export class Flow<T = Record<string, AnyNode>> {
  readonly isFlow = true;
  declare readonly results: { [K in keyof T]: ResultOf<T[K]> };

  constructor(
    readonly nodes: T,
    readonly options: FlowOptions,
  ) {}

  /** Returns this flow with one more function; the results of the earlier nodes it needs are typed. */
  node<const K extends string, R>(
    id: Fresh<T, K>,
    call: (needs: Record<string, never>, context: NodeContext) => R | Promise<R>,
  ): Flow<With<T, K, Node<R>>>;
  node<const K extends string, const N extends Earlier<T>, R>(
    id: Fresh<T, K>,
    needs: N,
    call: (needs: Given<T, N>, context: NodeContext) => R | Promise<R>,
  ): Flow<With<T, K, Node<R>>>;
  node<const K extends string, const N extends Earlier<T>, R>(
    id: Fresh<T, K>,
    needs: N,
    options: Asked,
    call: (needs: Given<T, N>, context: NodeContext) => R | Promise<R>,
  ): Flow<With<T, K, Node<R>>>;
  node(id: string, ...rest: unknown[]): unknown {
    const call = rest.pop() as NodeFunction;
    const [needs, options] = rest as [Needs?, Asked?];
    return this.#with(id, node({ ...options, needs } as Asked, call as () => unknown));
  }

  /** Returns this flow with a function that runs for each item of an earlier node's list. */
  map<const K extends string, const M extends IdOf<T>, R>(
    id: Fresh<T, K>,
    over: M,
    call: (item: ItemOf<ResultOf<T[M]>>, context: NodeContext) => R | Promise<R>,
  ): Flow<With<T, K, Node<R[]>>>;
  map<const K extends string, const M extends IdOf<T>, R>(
    id: Fresh<T, K>,
    over: M,
    options: Asked,
    call: (item: ItemOf<ResultOf<T[M]>>, context: NodeContext) => R | Promise<R>,
  ): Flow<With<T, K, Node<R[]>>>;
  map(id: string, over: string, ...rest: unknown[]): unknown {
    return this.#with(id, map(over, ...(rest as [Asked, () => unknown])));
  }

  /** Returns this flow with a node made by `sh`, `job`, `node` or `map`. */
  add<const K extends string, R, U>(
    id: Fresh<T, K>,
    one: Node<R, U> & Fitting<T, Node<R, U>, U>,
  ): Flow<With<T, K, Node<R>>> {
    return this.#with(id, one) as Flow<With<T, K, Node<R>>>;
  }

  #with(id: string, one: unknown): unknown {
    if (Object.hasOwn(this.nodes as object, id)) throw new CroreError('BAD_FLOW', `duplicate node '${id}'`);
    return new Flow({ ...this.nodes, [id]: one } as never, this.options);
  }

  /** The validated graph; throws BAD_FLOW. `file` is the position that errors name. */
  graph(file = 'flow', name = 'flow'): Graph {
    const nodes = Object.entries(this.nodes as Record<string, AnyNode>);
    const ids = new Map(nodes.map(([id, one]) => [one, id]));
    const builder = new GraphBuilder((id) => `${file}, node '${id}'`);
    const { cache, env, tokens } = this.options;
    for (const [id, { work, asked }] of nodes) {
      const place = `${file}, node '${id}'`;
      const { map: over, needs, timeout, ...rest } = asked;
      checkKeys(asked as Fields, OPTION_KEYS, 'its options', place);
      const mapped = typeof over === 'object' ? idOf(over, ids, place) : over;
      const fields: Fields = { ...rest, map: mapped, timeout: typeof timeout === 'number' ? `${timeout}ms` : timeout };
      const [edges, renamed] = resolveNeeds(id, needs, ids, place);
      builder.node(
        id,
        { work: renamed ? rename(work, renamed) : work, ...readOptions(id, fields, cache === true, place) },
        place,
      );
      for (const [need, policy] of edges) builder.edge(need, id, policy);
      if (mapped !== undefined && !edges.some(([need]) => need === mapped)) builder.edge(mapped, id);
    }
    return builder.finish({
      name: this.options.name ?? name,
      env: readEnv(env, 'env', file),
      tokens: readTokens(tokens, 'tokens', file),
    });
  }
}

/** Edges by id, and the names the function uses for its upstream nodes where those differ. */
function resolveNeeds(
  id: string,
  needs: Needs | undefined,
  ids: Map<AnyNode, string>,
  place: string,
): [[string, NeedPolicy][], Map<string, string> | undefined] {
  if (needs === undefined || Array.isArray(needs)) return [readNeeds(id, needs, place), undefined];
  const edges: [string, NeedPolicy][] = [];
  const renamed = new Map<string, string>();
  for (const [name, need] of Object.entries(needs as Record<string, NeedPolicy | AnyNode>)) {
    if (typeof need !== 'object') {
      edges.push(...readNeeds(id, { [name]: need }, place));
      continue;
    }
    const up = idOf(need, ids, place);
    edges.push([up, 'success']);
    if (up !== name) renamed.set(name, up);
  }
  return [edges, renamed.size > 0 ? renamed : undefined];
}

function idOf(one: AnyNode, ids: Map<AnyNode, string>, place: string): string {
  const id = ids.get(one);
  if (id === undefined) throw new CroreError('BAD_FLOW', `${place}: needs a node that is not part of the flow`);
  return id;
}

function rename(work: Work, names: Map<string, string>): Work {
  if (work.kind !== 'function') return work;
  const call: NodeFunction = (needs: Record<string, unknown>, context: never) => {
    const named = { ...needs };
    for (const [name, id] of names) named[name] = needs[id];
    return work.call(named as never, context);
  };
  return { kind: 'function', call, written: work.written ?? work.call };
}
