import type { BackoffOptions } from '../engine/options.js';
import { CroreError } from '../errors.js';
import type { Duration } from '../job/duration.js';
import { Draft } from './draft.js';
import { checkKeys, type Fields, OPTION_KEYS, readEnv, readNeeds, readOptions, readTokens } from './fields.js';
import type { Graph } from './graph.js';
import type { NeedPolicy, NodeContext, NodeFunction, Work } from './spec.js';

/** What may be asked of a node in TypeScript; durations are milliseconds or texts such as '30s'. */
export interface Asked {
  retries?: number;
  backoff?: Duration | BackoffOptions;
  timeout?: Duration;
  priority?: number;
  cpu?: number;
  tokens?: Record<string, number>;
  env?: Record<string, string>;
  cwd?: string;
  inputs?: readonly string[];
  outputs?: readonly string[];
  cache?: boolean;
}

/** Ids, or ids with a policy, or the nodes themselves: only these carry the types of their results with them. */
export type Needs = readonly string[] | Record<string, NeedPolicy | Node<unknown>>;

declare const RESULT: unique symbol;
declare const TAKES: unique symbol;

/** A node with a result `R`; what it takes from upstream, by id, is `U`. */
export interface Node<R, U = unknown> {
  readonly [RESULT]?: R;
  readonly [TAKES]?: (needs: U) => void;
  readonly work: Work;
  readonly asked: Asked & { needs?: Needs; map?: string | Node<unknown> };
}

export type ResultOf<N> = N extends Node<infer R, never> ? R : N extends Node<infer R, infer _U> ? R : never;
type Results<T> = { [K in keyof T]: T[K] extends Node<infer R, infer _U> ? R : undefined };
type Item<M> = M extends Node<infer R> ? (R extends readonly (infer I)[] ? I : never) : unknown;

/** A function without upstream nodes. */
export function node<R>(call: (needs: Record<string, never>, context: NodeContext) => R | Promise<R>): Node<R>;
/** With upstream nodes as values: their results are typed. */
export function node<const N extends Record<string, Node<unknown> | NeedPolicy>, R>(
  options: Asked & { needs: N },
  call: (needs: Results<N>, context: NodeContext) => R | Promise<R>,
): Node<R>;
/** With upstream nodes by id: say the types of their results, `flow` checks them. */
export function node<const K extends string, U extends Record<K, unknown>, R>(
  options: Asked & { needs: readonly K[] },
  call: (needs: U, context: NodeContext) => R | Promise<R>,
): Node<R, U>;
export function node<R>(
  options: Asked,
  call: (needs: Record<string, never>, context: NodeContext) => R | Promise<R>,
): Node<R>;
export function node(first: Asked | NodeFunction, second?: NodeFunction): Node<unknown> {
  const [asked, call] = typeof first === 'function' ? [{}, first] : [first, second];
  if (typeof call !== 'function') throw new CroreError('BAD_OPTION', 'node needs a function');
  return { work: { kind: 'function', call }, asked };
}

/** A shell command, or a program with its arguments. Its result is the last line it prints, parsed when it is JSON. */
export function sh<R = unknown>(
  run: string | readonly string[],
  options: Asked & { needs?: Needs; map?: string | Node<unknown> } = {},
): Node<R> {
  return { work: { kind: 'shell', run }, asked: options };
}

/** A job for whoever works that queue, in any language. */
export function job<R = unknown>(
  queue: string,
  payload: unknown = null,
  options: Asked & { needs?: Needs; map?: string | Node<unknown> } = {},
): Node<R> {
  return { work: { kind: 'queue', queue, payload }, asked: options };
}

/** Calls a function for each item of a list that an upstream node gives; its result is the list of theirs. */
export function map<M extends Node<unknown> | string, R>(
  over: M,
  call: (item: Item<M>, context: NodeContext) => R | Promise<R>,
): Node<R[]>;
export function map<M extends Node<unknown> | string, R>(
  over: M,
  options: Asked,
  call: (item: Item<M>, context: NodeContext) => R | Promise<R>,
): Node<R[]>;
export function map(
  over: Node<unknown> | string,
  first: Asked | ((item: never, context: NodeContext) => unknown),
  second?: (item: never, context: NodeContext) => unknown,
): Node<unknown[]> {
  const [asked, call] = typeof first === 'function' ? [{}, first] : [first, second!];
  const each: NodeFunction = (_needs, context: NodeContext) => call(context.item as never, context);
  return { work: { kind: 'function', call: each }, asked: { ...asked, map: over } };
}

/** What `flow` must find for a node that names its upstream nodes: those nodes, with results of the types it takes. */
type Checked<T> = {
  [K in keyof T]: T[K] extends Node<unknown, infer U>
    ? unknown extends U
      ? T[K]
      : { [P in keyof U]: P extends keyof T ? ResultOf<T[P]> : never } extends U
        ? T[K]
        : Node<unknown, { [P in keyof U]: P extends keyof T ? ResultOf<T[P]> : never }>
    : never;
};

export interface FlowOptions {
  name?: string;
  env?: Record<string, string>;
  /** How many tokens there are, by name. */
  tokens?: Record<string, number>;
  /** Cache every node that does not say otherwise. */
  cache?: boolean;
}

/** A graph of nodes by id. */
export function flow<const T extends Record<string, Node<unknown, never>>>(
  nodes: T & Checked<T>,
  options: FlowOptions = {},
): Flow<T> {
  return new Flow<T>(nodes, options);
}

export class Flow<T = Record<string, Node<unknown, never>>> {
  readonly isFlow = true;
  declare readonly results: { [K in keyof T]: ResultOf<T[K]> };

  constructor(
    readonly nodes: T,
    readonly options: FlowOptions,
  ) {}

  /** The checked graph; throws BAD_FLOW. `file` says where complaints point to. */
  graph(file = 'flow', name = 'flow'): Graph {
    const nodes = Object.entries(this.nodes as Record<string, Node<unknown>>);
    const ids = new Map(nodes.map(([id, one]) => [one, id]));
    const draft = new Draft((id) => `${file}, node '${id}'`);
    const { cache, env, tokens } = this.options;
    for (const [id, { work, asked }] of nodes) {
      const place = `${file}, node '${id}'`;
      const { map: over, needs, timeout, ...rest } = asked;
      checkKeys(asked as Fields, OPTION_KEYS, 'its options', place);
      const mapped = typeof over === 'object' ? idOf(over, ids, place) : over;
      const fields: Fields = { ...rest, map: mapped, timeout: typeof timeout === 'number' ? `${timeout}ms` : timeout };
      const [edges, renamed] = resolveNeeds(id, needs, ids, place);
      draft.node(
        id,
        { work: renamed ? rename(work, renamed) : work, ...readOptions(id, fields, cache === true, place) },
        place,
      );
      for (const [need, policy] of edges) draft.edge(need, id, policy);
      if (mapped !== undefined && !edges.some(([need]) => need === mapped)) draft.edge(mapped, id);
    }
    return draft.finish({
      name: this.options.name ?? name,
      env: readEnv(env, 'env', file),
      tokens: readTokens(tokens, 'tokens', file),
    });
  }
}

/** Edges by id, and how the function calls its upstream nodes where that differs. */
function resolveNeeds(
  id: string,
  needs: Needs | undefined,
  ids: Map<Node<unknown>, string>,
  place: string,
): [[string, NeedPolicy][], Map<string, string> | undefined] {
  if (needs === undefined || Array.isArray(needs)) return [readNeeds(id, needs, place), undefined];
  const edges: [string, NeedPolicy][] = [];
  const renamed = new Map<string, string>();
  for (const [name, need] of Object.entries(needs as Record<string, NeedPolicy | Node<unknown>>)) {
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

function idOf(one: Node<unknown>, ids: Map<Node<unknown>, string>, place: string): string {
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
  return { kind: 'function', call };
}
