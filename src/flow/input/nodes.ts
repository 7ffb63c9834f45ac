import type { BackoffOptions } from '../../engine/input/options.js';
import { CroreError } from '../../errors.js';
import type { Duration } from '../../job/duration.js';
import type { NeedPolicy, NodeContext, NodeFunction, Work } from '../graph/node-spec.js';

/** The options of a node in TypeScript; durations are milliseconds or strings such as '30s'. */
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

/** Ids, ids with a policy, or the nodes themselves; only the nodes carry the types of their results. */
export type Needs = readonly string[] | Record<string, NeedPolicy | AnyNode>;

declare const RESULT: unique symbol;
declare const TAKES: unique symbol;

/** A node with a result of type `R`; `U` is what it takes from upstream nodes that it names by id. */
export interface Node<R, U = unknown> {
  readonly [RESULT]?: R;
  readonly [TAKES]?: (needs: U) => void;
  readonly work: Work;
  readonly asked: Asked & { needs?: Needs; map?: string | AnyNode };
}

/** A node with any result and any needs. */
export type AnyNode = Node<unknown, never>;

export type ResultOf<N> = N extends Node<infer R, never> ? R : N extends Node<infer R, infer _U> ? R : never;
export type ItemOf<R> = R extends readonly (infer I)[] ? I : never;

type Results<N> = { [K in keyof N]: N[K] extends Node<infer R, infer _U> ? R : unknown };
type Item<M> = M extends AnyNode ? ItemOf<ResultOf<M>> : unknown;

/** The ids among a node's needs, whose result types are unknown. */
type Named<N> = N extends readonly (infer K extends string)[]
  ? Ids<K>
  : Ids<Extract<{ [K in keyof N]: N[K] extends string ? K : never }[keyof N], string>>;
/** `unknown` for no ids and for arbitrary strings: those are checked when the flow runs. */
type Ids<K extends string> = [K] extends [never] ? unknown : string extends K ? unknown : Record<K, unknown>;

interface Links<N extends Needs, M extends string | AnyNode> {
  needs?: N;
  map?: M;
}
type Linked<N, M> = Named<N> & (M extends string ? Ids<M> : unknown);

/** A function without upstream nodes. */
export function node<R>(call: (needs: Record<string, never>, context: NodeContext) => R | Promise<R>): Node<R>;
/** With upstream nodes as values: their results are typed. */
export function node<const N extends Record<string, AnyNode | NeedPolicy>, R>(
  options: Asked & { needs: N },
  call: (needs: Results<N>, context: NodeContext) => R | Promise<R>,
): Node<R, Named<N>>;
/** With upstream nodes by id: declare the types of their results, `flow` checks them. */
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
export function sh<R = unknown, const N extends Needs = readonly string[], const M extends string | AnyNode = AnyNode>(
  run: string | readonly string[],
  options: Asked & Links<N, M> = {},
): Node<R, Linked<N, M>> {
  return { work: { kind: 'shell', run }, asked: options };
}

/** A job for the workers of that queue, in any language. */
export function job<R = unknown, const N extends Needs = readonly string[], const M extends string | AnyNode = AnyNode>(
  queue: string,
  payload: unknown = null,
  options: Asked & Links<N, M> = {},
): Node<R, Linked<N, M>> {
  return { work: { kind: 'queue', queue, payload }, asked: options };
}

/** Calls a function for each item of an upstream node's list; its result is the list of their results. */
export function map<const M extends AnyNode | string, R>(
  over: M,
  call: (item: Item<M>, context: NodeContext) => R | Promise<R>,
): Node<R[], Linked<readonly string[], M>>;
export function map<const M extends AnyNode | string, R>(
  over: M,
  options: Asked,
  call: (item: Item<M>, context: NodeContext) => R | Promise<R>,
): Node<R[], Linked<readonly string[], M>>;
export function map(
  over: AnyNode | string,
  first: Asked | ((item: never, context: NodeContext) => unknown),
  second?: (item: never, context: NodeContext) => unknown,
): Node<unknown[]> {
  const [asked, call] = typeof first === 'function' ? [{}, first] : [first, second];
  if (typeof call !== 'function') throw new CroreError('BAD_OPTION', 'map needs a function');
  const each: NodeFunction = (_needs, context: NodeContext) => call(context.item as never, context);
  return { work: { kind: 'function', call: each, written: call }, asked: { ...asked, map: over } };
}
