import { isTerminal, type NewJob, type Spec } from '../../job/job.js';
import type { Arg } from './connection/client.js';
import { get } from './reads.js';
import type { View } from './view.js';

const NUL = '\0';
/** Holds the record of a job that somebody waited for: see kept_records.lua. */
const WAITER = '@';
/** Maximum number of dependencies per script. */
const PAGE = 500;
/** Maximum number of message batches per call; the next sweep delivers the rest. */
const MOST_BATCHES = 200;

interface Dependency {
  downQueue: string;
  downId: string;
  upQueue: string;
  upId: string;
}

/**
 * Dependencies between jobs of different queues, which are in different slots. A dependency is stored in both: as a
 * field that the dependent job still waits for, and as a member of the upstream job's dependents. Each step can be
 * repeated.
 */
export class Dependencies {
  readonly #cursors = new Map<string, string>();
  readonly #keptCursors = new Map<string, string>();
  /** Queues whose outbox this process is draining, and whether another call has requested it again. */
  readonly #draining = new Map<string, boolean>();

  constructor(private readonly view: View) {}

  /** The dependencies of these jobs on other queues. */
  foreign(queue: string, jobs: readonly NewJob[]): Dependency[] {
    const edges: Dependency[] = [];
    for (const job of jobs) {
      for (const need of job.spec.needs ?? []) {
        if (need.queue === queue) continue;
        edges.push({ downQueue: queue, downId: job.id, upQueue: need.queue, upId: need.id });
      }
    }
    return edges;
  }

  /**
   * Writes the upstream half of each dependency; returns the upstream job's state, or `missing`. Dependents that are new
   * need a record, others may depend on a job that has been removed since.
   */
  async link(edges: readonly Dependency[], areNew = false): Promise<string[]> {
    const states: string[] = new Array(edges.length).fill('missing');
    for (const [queue, indexes] of groupBy(edges, (edge) => edge.upQueue)) {
      for (const page of pagesOf(indexes)) {
        const args: Arg[] = [this.view.time(), areNew ? '1' : '0'];
        for (const i of page) args.push(edges[i]!.upId, `${edges[i]!.downQueue}${NUL}${edges[i]!.downId}`);
        const reply = (await this.view.run('link_dependents', queue, args)).reply as Buffer[];
        page.forEach((i, k) => {
          states[i] = reply[k]!.toString();
        });
      }
    }
    return states;
  }

  /**
   * Notifies dependents that these upstream jobs have ended; returns the queues whose outbox is no longer empty as a
   * result.
   */
  async #deliver(edges: readonly Dependency[], stateOf: (index: number) => string): Promise<string[]> {
    const flagged: string[] = [];
    for (const [queue, indexes] of groupBy(edges, (edge) => edge.downQueue)) {
      for (const page of pagesOf(indexes)) {
        const args: Arg[] = [this.view.time()];
        for (const i of page) args.push(edges[i]!.downId, `${edges[i]!.upQueue}${NUL}${edges[i]!.upId}`, stateOf(i));
        if ((await this.view.run('deliver_ends', queue, args)).reply === 1) flagged.push(queue);
      }
    }
    return flagged;
  }

  /** Links the dependencies once more and delivers those whose upstream job has ended since. */
  async settle(edges: readonly Dependency[]): Promise<void> {
    if (edges.length === 0) return;
    const states = await this.link(edges);
    const ended = edges.map((_edge, i) => i).filter((i) => /^(done|dead|cancelled|missing)$/.test(states[i]!));
    const flagged = await this.#deliver(
      ended.map((i) => edges[i]!),
      (k) => states[ended[k]!]!,
    );
    await this.drain(...flagged);
  }

  /**
   * Delivers the ends of jobs in these queues to dependents in other queues, or to more dependents than one script
   * should handle. A delivery may fill further outboxes, including its own: these are put on a list and never drained
   * within the delivery. A message is removed from its outbox after delivery, so if a process dies in between, the next
   * sweep delivers it. False if something is left for later.
   */
  async drain(...queues: string[]): Promise<boolean> {
    const pending = new Set(queues);
    let batches = 0;
    for (const queue of pending) {
      pending.delete(queue);
      // Another call of this process is draining it, and will check once more.
      if (this.#draining.has(queue)) {
        this.#draining.set(queue, true);
        continue;
      }
      this.#draining.set(queue, false);
      try {
        for (let delivered: Arg[] | undefined = []; delivered; batches++) {
          if (batches === MOST_BATCHES) return false;
          delivered = await this.#deliverBatch(queue, delivered, pending);
        }
      } finally {
        if (this.#draining.get(queue)) pending.add(queue);
        this.#draining.delete(queue);
      }
    }
    return true;
  }

  /**
   * Removes the delivered messages from an outbox and delivers the next ones; returns those, or undefined if nothing is
   * left.
   */
  async #deliverBatch(queue: string, delivered: Arg[], pending: Set<string>): Promise<Arg[] | undefined> {
    const [left, ...messages] = (await this.view.run('drain_outbox', queue, [this.view.time(), ...delivered]))
      .reply as [number, ...Buffer[]];
    if (left === 0) return undefined;
    const edges: Dependency[] = [];
    const states: string[] = [];
    for (let i = 0; i < messages.length; ) {
      const [state, upId] = splitOnce(messages[i]!.toString());
      const count = Number(messages[i + 1]);
      for (const member of messages.slice(i + 2, i + 2 + count)) {
        const [downQueue, downId] = splitOnce(member.toString());
        edges.push({ downQueue, downId, upQueue: queue, upId });
        states.push(state);
      }
      i += 2 + count;
    }
    for (const flagged of await this.#deliver(edges, (i) => states[i]!)) pending.add(flagged);
    return messages;
  }

  /** Checks some blocked jobs again: a process may have died between writing the two halves of a dependency. */
  async recheck(queue: string): Promise<void> {
    const edges: Dependency[] = [];
    for (const field of await this.#someFields(queue, 'edges', this.#cursors)) {
      const [downId, rest] = splitOnce(field);
      const [upQueue, upId] = splitOnce(rest);
      if (upQueue !== '') edges.push({ downQueue: queue, downId, upQueue, upId });
    }
    await this.settle(edges);
  }

  /** These jobs have ended: the records of their upstream jobs in other queues need not be kept for them. */
  release(queue: string, ended: readonly { id: string; spec: Spec }[]): void {
    const edges = ended.flatMap(({ id, spec }) =>
      (spec.needs ?? [])
        .filter((need) => need.queue !== queue)
        .map((need) => ({ downQueue: queue, downId: id, upQueue: need.queue, upId: need.id })),
    );
    if (edges.length > 0) this.#release(edges).catch(() => {}); // a sweep does it then
  }

  /** Checks some kept records again: a process may have died before it released them, or before it added the dependent. */
  async recheckKept(queue: string): Promise<void> {
    const edges: Dependency[] = [];
    for (const field of await this.#someFields(queue, 'kept_by', this.#keptCursors)) {
      const [upId, holder] = splitOnce(field);
      if (holder === WAITER || holder.startsWith(NUL)) continue;
      const [downQueue, downId] = splitOnce(holder);
      edges.push({ downQueue, downId, upQueue: queue, upId });
    }
    for (const [downQueue, indexes] of groupBy(edges, (edge) => edge.downQueue)) {
      const jobs = await get(
        this.view,
        downQueue,
        indexes.map((i) => edges[i]!.downId),
      );
      const over = indexes.filter((_index, k) => !jobs[k] || isTerminal(jobs[k].state));
      await this.#release(over.map((i) => edges[i]!));
    }
  }

  async #release(edges: readonly Dependency[]): Promise<void> {
    for (const [queue, indexes] of groupBy(edges, (edge) => edge.upQueue)) {
      for (const page of pagesOf(indexes)) {
        const args: Arg[] = [this.view.time()];
        for (const i of page) args.push(edges[i]!.upId, `${edges[i]!.downQueue}${NUL}${edges[i]!.downId}`);
        await this.view.run('release_kept', queue, args);
      }
    }
  }

  /** About a hundred fields of a hash; the next call continues after them. */
  async #someFields(queue: string, name: string, cursors: Map<string, string>): Promise<string[]> {
    const key = `${this.view.keys.queue(queue).stem}${name}`;
    const cursor = cursors.get(queue) ?? '0';
    const [next, flat] = (await this.view.client.call('HSCAN', key, cursor, 'COUNT', '100')) as [Buffer, Buffer[]];
    if (next.toString() === '0') cursors.delete(queue);
    else cursors.set(queue, next.toString());
    return flat.filter((_item, i) => i % 2 === 0).map((field) => field.toString());
  }
}

function splitOnce(text: string): [string, string] {
  const cut = text.indexOf(NUL);
  return [text.slice(0, cut), text.slice(cut + 1)];
}

function pagesOf(indexes: readonly number[]): number[][] {
  const pages: number[][] = [];
  for (let i = 0; i < indexes.length; i += PAGE) pages.push(indexes.slice(i, i + PAGE));
  return pages;
}

function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  items.forEach((item, i) => {
    const group = groups.get(key(item));
    if (group) group.push(i);
    else groups.set(key(item), [i]);
  });
  return groups;
}
