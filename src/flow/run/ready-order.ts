import type { NodeOrder } from '../graph/heap.js';

/**
 * The order of ready nodes: the largest weight, then the one that became ready first, then the one that comes first in
 * the file. Nodes that the same end made ready became ready at the same moment.
 */
export class ReadyOrder implements NodeOrder {
  /** The moment at which each node became ready; 0: it has not been. */
  readonly #since: Uint32Array;
  #moment = 1;

  constructor(
    private readonly weights: { readonly [node: number]: number },
    size: number,
  ) {
    this.#since = new Uint32Array(size);
  }

  /** What becomes ready from now on is behind what is ready now. */
  nextMoment(): void {
    this.#moment++;
  }

  /** A node that is queued again keeps its place. */
  becameReady(node: number): void {
    this.#since[node] ||= this.#moment;
  }

  before(a: number, b: number): boolean {
    const difference = this.weights[a]! - this.weights[b]!;
    if (difference !== 0) return difference > 0;
    const earlier = this.#since[a]! - this.#since[b]!;
    return earlier < 0 || (earlier === 0 && a < b);
  }
}
