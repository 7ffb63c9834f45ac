import type { NewJob } from '../../job/job.js';
import type { Arg, RedisClient, Reply } from './connection/client.js';
import type { Keys } from './keys.js';

const NUL = '\0';
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
  /** Queues whose outbox this process is draining, and whether another call has requested it again. */
  readonly #draining = new Map<string, boolean>();

  constructor(
    private readonly client: RedisClient,
    private readonly keys: Keys,
    private readonly now: () => string,
  ) {}

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

  /** Writes the upstream half of each dependency; returns the upstream job's state, or `missing`. */
  async link(edges: readonly Dependency[]): Promise<string[]> {
    const states: string[] = new Array(edges.length).fill('missing');
    for (const [queue, indexes] of groupBy(edges, (edge) => edge.upQueue)) {
      for (const page of pagesOf(indexes)) {
        const args: Arg[] = [this.now()];
        for (const i of page) args.push(edges[i]!.upId, `${edges[i]!.downQueue}${NUL}${edges[i]!.downId}`);
        const reply = (await this.#run('link_dependents', queue, args)) as Buffer[];
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
        const args: Arg[] = [this.now()];
        for (const i of page) args.push(edges[i]!.downId, `${edges[i]!.upQueue}${NUL}${edges[i]!.upId}`, stateOf(i));
        if ((await this.#run('deliver_ends', queue, args)) === 1) flagged.push(queue);
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
    const [left, ...messages] = (await this.#run('drain_outbox', queue, [this.now(), ...delivered])) as [
      number,
      ...Buffer[],
    ];
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
    const cursor = this.#cursors.get(queue) ?? '0';
    const edgesKey = `${this.keys.queue(queue).stem}edges`;
    const [next, fields] = (await this.client.call('HSCAN', edgesKey, cursor, 'COUNT', '100')) as [Buffer, Buffer[]];
    if (next.toString() === '0') this.#cursors.delete(queue);
    else this.#cursors.set(queue, next.toString());
    const edges: Dependency[] = [];
    for (let i = 0; i < fields.length; i += 2) {
      const [downId, rest] = splitOnce(fields[i]!.toString());
      const [upQueue, upId] = splitOnce(rest);
      if (upQueue !== '') edges.push({ downQueue: queue, downId, upQueue, upId });
    }
    await this.settle(edges);
  }

  async #run(name: 'link_dependents' | 'deliver_ends' | 'drain_outbox', queue: string, args: Arg[]): Promise<Reply> {
    const { list, stem } = this.keys.queue(queue);
    return (await this.client.run(name, [list, stem], args)).reply;
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
