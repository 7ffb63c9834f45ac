import type { Graph } from '../graph/graph.js';
import { BLOCKED, CANCELLED, DONE, type FAILED, isEnd, READY, RUNNING, SKIPPED } from '../graph/node-spec.js';
import { ReadyQueues } from './ready-queues.js';

/**
 * Which node may run next: pure bookkeeping over arrays, no clock, no promise. A node is ready when every edge into it has
 * been counted once; the end of a node is told to `release` only after it was written down.
 */
export class NodeScheduler {
  readonly states: Uint8Array;
  readonly #pending: Int32Array;
  readonly #lines: ReadyQueues;
  /** Its edges have been counted. */
  readonly #released: Uint8Array;
  #open: number;
  #running = 0;
  #stopped = false;

  constructor(
    private readonly graph: Graph,
    weights: Float64Array,
    slots: number,
    /** Told of nodes that end without running. */
    private readonly dropped: (node: number, state: typeof SKIPPED | typeof CANCELLED) => void = () => {},
  ) {
    const size = graph.ids.length;
    this.#lines = new ReadyQueues(graph, weights, slots);
    this.states = new Uint8Array(size);
    this.#pending = new Int32Array(size);
    this.#released = new Uint8Array(size);
    for (let i = 0; i < size; i++) this.#pending[i] = graph.upAt[i + 1]! - graph.upAt[i]!;
    this.#open = size;
  }

  /** Nodes that have not ended. */
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

  /** Leaves a node out, or takes it as done in an earlier run. To be called before `begin`. */
  settle(node: number, state: typeof DONE | typeof FAILED): void {
    this.states[node] = state;
    this.#open--;
  }

  /** Readies what waits for nothing. */
  begin(): void {
    for (const node of this.graph.order) {
      if (isEnd(this.states[node]!)) this.release(node);
      else if (this.#pending[node] === 0 && this.states[node] === BLOCKED) this.#ready(node);
    }
  }

  /** The next node to run here, or -1. */
  next(): number {
    return this.#started(this.#lines.take());
  }

  /** The next node to run in somebody else's slots, or -1. */
  nextElsewhere(): number {
    return this.#started(this.#lines.takeAway());
  }

  /** An attempt is over: its slot is free again, where it had one here. */
  free(node: number, here: boolean): void {
    if (here) this.#lines.giveBack(node);
    this.#running--;
  }

  end(node: number, state: typeof DONE | typeof FAILED | typeof CANCELLED): void {
    this.states[node] = state;
    this.#open--;
  }

  /** The node runs so many times more, behind whatever is ready when it is a retry. */
  again(node: number, retry: boolean, times = 1): void {
    for (let i = 0; i < times; i++) this.#lines.put(node, retry);
  }

  /** Counts the edges out of a node that has ended. */
  release(node: number): void {
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

  /**
   * Starts nothing more but what was to run in any case: a node that takes any end of an upstream, unless something else
   * it needs will not happen. The rest is cancelled. Returns those that waited for a further attempt: they are the
   * caller's to end.
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

  #started(node: number): number {
    if (node < 0) return node;
    this.states[node] = RUNNING;
    this.#running++;
    return node;
  }

  #ready(node: number): void {
    this.states[node] = READY;
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

  /** What is left waits for fewer: its edges are counted anew. */
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
