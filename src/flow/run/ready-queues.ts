import type { Graph } from '../graph/graph.js';
import { Heap, type NodeOrder } from '../graph/heap.js';

/** After smaller nodes have overtaken a node this many times, slots are kept free for it. */
const PATIENCE = 50;

interface Line {
  cpu: number;
  tokens: [string, number][];
  first: Heap;
  retries: number[];
  passed: number;
}

/**
 * Queues of ready nodes, one for each distinct resource demand, so that a node that does not fit yet never blocks those
 * that do. First attempts go before retries. A node that has been overtaken too often gets its slots reserved.
 */
export class ReadyQueues {
  readonly #lines: Line[] = [];
  readonly #lineOf: Uint16Array | undefined;
  readonly #free: Map<string, number>;
  #waiting = 0;

  constructor(
    graph: Graph,
    private readonly order: NodeOrder,
    private readonly slots: number,
    private free = slots,
  ) {
    this.#free = new Map(Object.entries(graph.tokens));
    const byDemand = new Map<string, number>();
    const lineOf = new Uint16Array(graph.specs.length);
    graph.specs.forEach(({ options: { cpu, tokens }, work }, i) => {
      // Jobs of other queues take no slot in this process.
      const slots = work.kind === 'queue' ? 0 : cpu;
      const key = tokens ? `${slots} ${JSON.stringify(tokens)}` : `${slots}`;
      if (!byDemand.has(key)) byDemand.set(key, this.#newLine(slots, tokens));
      lineOf[i] = byDemand.get(key)!;
    });
    this.#lineOf = this.#lines.length > 1 ? lineOf : undefined;
  }

  get waiting(): number {
    return this.#waiting;
  }

  put(node: number, retry: boolean): void {
    const line = this.#of(node);
    if (retry) line.retries.push(node);
    else line.first.push(node);
    this.#waiting++;
  }

  /** Takes the best node that fits now and reserves its resources; -1 when there is none. */
  take(): number {
    if (this.#waiting === 0) return -1;
    const line = this.#best(false) ?? this.#best(true);
    if (!line) return -1;
    this.#waiting--;
    const node = line.first.size > 0 ? line.first.pop() : line.retries.shift()!;
    this.#count(line, -1);
    return node;
  }

  /** Takes the best node for a remote worker's slots; -1 when there is none. */
  takeAway(): number {
    if (this.#waiting === 0) return -1;
    const line = this.#pick(() => true, false) ?? this.#pick(() => true, true);
    if (!line) return -1;
    this.#waiting--;
    return line.first.size > 0 ? line.first.pop() : line.retries.shift()!;
  }

  giveBack(node: number): void {
    this.#count(this.#of(node), 1);
  }

  #newLine(cpu: number, tokens: Readonly<Record<string, number>> | undefined): number {
    // A demand above the total could never be met: such a node gets the whole total.
    const all = Object.entries(tokens ?? {}).map(([name, count]): [string, number] => {
      if (!this.#free.has(name)) this.#free.set(name, 1);
      return [name, Math.min(count, this.#free.get(name)!)];
    });
    this.#lines.push({
      cpu: Math.min(cpu, Math.max(1, this.slots)),
      tokens: all,
      first: new Heap(this.order),
      retries: [],
      passed: 0,
    });
    return this.#lines.length - 1;
  }

  #of(node: number): Line {
    return this.#lines[this.#lineOf?.[node] ?? 0]!;
  }

  #best(retries: boolean): Line | undefined {
    if (this.#lines.length === 1)
      return this.#has(this.#lines[0]!, retries) && this.#fits(this.#lines[0]!) ? this.#lines[0] : undefined;
    const overdue = this.#lines.find((line) => line.passed > PATIENCE && this.#has(line, retries));
    if (overdue && !this.#fits(overdue)) return undefined;
    const best = this.#pick((line) => this.#fits(line), retries);
    for (const line of this.#lines)
      if (line !== best && best && this.#has(line, retries) && !this.#fits(line)) line.passed++;
    if (best) best.passed = 0;
    return best;
  }

  #pick(allowed: (line: Line) => boolean, retries: boolean): Line | undefined {
    let best: Line | undefined;
    for (const line of this.#lines) {
      if (!this.#has(line, retries) || !allowed(line)) continue;
      if (!best || this.order.before(this.#top(line, retries), this.#top(best, retries))) best = line;
    }
    return best;
  }

  #has(line: Line, retries: boolean): boolean {
    return retries ? line.first.size === 0 && line.retries.length > 0 : line.first.size > 0;
  }

  #top(line: Line, retries: boolean): number {
    return retries ? line.retries[0]! : line.first.top;
  }

  #fits(line: Line): boolean {
    return line.cpu <= this.free && line.tokens.every(([name, count]) => count <= this.#free.get(name)!);
  }

  #count(line: Line, sign: 1 | -1): void {
    this.free += sign * line.cpu;
    for (const [name, count] of line.tokens) this.#free.set(name, this.#free.get(name)! + sign * count);
  }
}
