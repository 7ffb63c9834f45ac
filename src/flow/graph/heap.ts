/** Which of two nodes goes first. */
export interface NodeOrder {
  before(a: number, b: number): boolean;
}

/** Ready nodes, the first of the order on top. */
export class Heap {
  #nodes = new Int32Array(16);
  #size = 0;

  constructor(private readonly order: NodeOrder) {}

  get size(): number {
    return this.#size;
  }

  get top(): number {
    return this.#nodes[0]!;
  }

  push(node: number): void {
    if (this.#size === this.#nodes.length) {
      const larger = new Int32Array(this.#size * 2);
      larger.set(this.#nodes);
      this.#nodes = larger;
    }
    const nodes = this.#nodes;
    let at = this.#size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.order.before(node, nodes[parent]!)) break;
      nodes[at] = nodes[parent]!;
      at = parent;
    }
    nodes[at] = node;
  }

  pop(): number {
    const nodes = this.#nodes;
    const top = nodes[0]!;
    const last = nodes[--this.#size]!;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && this.order.before(nodes[child + 1]!, nodes[child]!)) child++;
      if (!this.order.before(nodes[child]!, last)) break;
      nodes[at] = nodes[child]!;
      at = child;
    }
    nodes[at] = last;
    return top;
  }
}
