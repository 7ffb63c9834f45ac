import type { Graph } from '../graph/graph.js';
import { BLOCKED, CANCELLED, DONE, type FAILED, isEnd, READY, RUNNING, SKIPPED } from '../graph/node-spec.js';
import { ReadyOrder } from './ready-order.js';
import { ReadyQueues } from './ready-queues.js';

/**
 * Decides which node runs next: pure bookkeeping over arrays, without clocks or promises. A node is ready when each of
 * its incoming edges has been counted once. The caller calls `release` for a finished node only after its completion is
 * written.
 */
export class NodeScheduler {
  readonly states: Uint8Array;
  readonly #pending: Int32Array;
  readonly #order: ReadyOrder;
  readonly #lines: ReadyQueues;
  /** 1 for nodes whose outgoing edges have been counted. */
  readonly #released: Uint8Array;
  #open: number;
  #running = 0;
  #stopped = false;

  constructor(
    private readonly graph: Graph,
    weights: Float64Array,
    slots: number,
    /** Called for nodes that end without running. */
    private readonly dropped: (node: number, state: typeof SKIPPED | typeof CANCELLED) => void = () => {},
  ) {
    const size = graph.ids.length;
    this.#order = new ReadyOrder(weights, size);
    this.#lines = new ReadyQueues(graph, this.#order, slots);
    this.states = new Uint8Array(size);
    this.#pending = new Int32Array(size);
    this.#released = new Uint8Array(size);
    for (let i = 0; i < size; i++) this.#pending[i] = graph.upAt[i + 1]! - graph.upAt[i]!;
    this.#open = size;
  }

  /** Number of nodes that have not finished. */
  get open(): number {
    return this.#open;
  }

  get running(): number {
    return this.#running;
  }

  get ready(): number {
    return this.#lines.waiting;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** Excludes a node, or marks it as done in an earlier run. Call this before `begin`. */
  settle(node: number, state: typeof DONE | typeof FAILED): void {
    this.states[node] = state;
    this.#open--;
  }

  /** Makes all nodes without dependencies ready. */
  begin(): void {
    for (const node of this.graph.order) {
      if (isEnd(this.states[node]!)) this.#release(node);
      else if (this.#pending[node] === 0 && this.states[node] === BLOCKED) this.#ready(node);
    }
  }

  /** The next node to run in this process, or -1. */
  next(): number {
    return this.#started(this.#lines.take());
  }

  /** The next node to run in a remote worker's slots, or -1. */
  nextElsewhere(): number {
    return this.#started(this.#lines.takeAway());
  }

  /** Ends an attempt and frees its slot if it ran in this process. */
  free(node: number, here: boolean): void {
    if (here) this.#lines.giveBack(node);
    this.#running--;
  }

  end(node: number, state: typeof DONE | typeof FAILED | typeof CANCELLED): void {
    this.states[node] = state;
    this.#open--;
  }

  /** Queues the node `times` more times; a retry goes behind all ready nodes. */
  again(node: number, retry: boolean, times = 1): void {
    for (let i = 0; i < times; i++) this.#lines.put(node, retry);
  }

  /** Counts the outgoing edges of a finished node. What this makes ready becomes ready at the same moment. */
  release(node: number): void {
    this.#order.nextMoment();
    this.#release(node);
  }

  /**
   * Starts no more nodes except those that accept any end of an upstream node, unless another of their dependencies
   * cannot succeed. Cancels the rest. Returns the nodes that waited for a retry: the caller must end them.
   */
  stop(everything = false): number[] {
    this.#stopped = true;
    const { order, upAt, ups, upPolicies } = this.graph;
    const again = this.#emptyLines();
    for (const node of order) {
      const state = this.states[node]!;
      if (isEnd(state) || state === RUNNING) continue;
      let anyEnd = false;
      let possible = !everything;
      let end: typeof SKIPPED | typeof CANCELLED = CANCELLED;
      for (let e = upAt[node]!; e < upAt[node + 1]!; e++) {
        if (upPolicies[e] === 1) anyEnd = true;
        else if (isEnd(this.states[ups[e]!]!) && this.states[ups[e]!] !== DONE) {
          possible = false;
          if (this.states[ups[e]!] !== CANCELLED) end = SKIPPED;
        }
      }
      if (anyEnd && possible) continue;
      this.#drop(node, end);
      this.#released[node] = 1;
    }
    this.#recount();
    return again;
  }

  #release(node: number): void {
    const { downAt, downs, downPolicies } = this.graph;
    const stack = [node];
    for (let up = stack.pop(); up !== undefined; up = stack.pop()) {
      const done = this.states[up] === DONE;
      this.#released[up] = 1;
      for (let e = downAt[up]!; e < downAt[up + 1]!; e++) {
        const down = downs[e]!;
        if (isEnd(this.states[down]!)) continue;
        if (done || downPolicies[e] === 1) {
          if (--this.#pending[down]! === 0 && this.states[down] === BLOCKED) this.#ready(down);
        } else if (this.states[down] === BLOCKED) {
          this.#drop(down, this.states[up] === CANCELLED ? CANCELLED : SKIPPED);
          stack.push(down);
        }
      }
    }
  }

  #started(node: number): number {
    if (node < 0) return node;
    this.states[node] = RUNNING;
    this.#running++;
    return node;
  }

  #ready(node: number): void {
    this.states[node] = READY;
    this.#order.becameReady(node);
    this.#lines.put(node, false);
  }

  #drop(node: number, state: typeof SKIPPED | typeof CANCELLED): void {
    this.states[node] = state;
    this.#open--;
    this.dropped(node, state);
  }

  #emptyLines(): number[] {
    const again: number[] = [];
    for (let node = this.#lines.takeAway(); node >= 0; node = this.#lines.takeAway()) {
      if (this.states[node] === READY) this.states[node] = BLOCKED;
      else again.push(node);
    }
    return again;
  }

  /** The remaining nodes have fewer open dependencies, so their edges are counted again. */
  #recount(): void {
    const { upAt, ups } = this.graph;
    for (let node = 0; node < this.states.length; node++) {
      if (this.states[node] !== BLOCKED) continue;
      let pending = 0;
      for (let e = upAt[node]!; e < upAt[node + 1]!; e++) if (this.#released[ups[e]!] === 0) pending++;
      this.#pending[node] = pending;
      if (pending === 0) this.#ready(node);
    }
  }
}
