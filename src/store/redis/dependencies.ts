import { isTerminal, type Need, type NewJob, type Spec } from '../../job/job.js';
import type { Arg } from './connection/client.js';
import { groupBy, MEMBER, pairs, splitOnce } from './edges.js';
import { get } from './reads.js';
import { memberName } from './records/arguments.js';
import type { View } from './view.js';

/** Holds the record of a job that somebody waited for: see kept_records.lua. */
const WAITER = '@';
/** How long the place of a member that has not been added is kept, in milliseconds: no call takes as long. */
const RESERVED = 60_000;
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
    return jobs.flatMap(({ id, spec }) => foreignEdges(queue, id, spec.needs));
  }

  /** An active job is about to wait for its children: links those in other queues, and returns them for `settle`. */
  async linkChildren(queue: string, id: string, children: readonly Need[]): Promise<Dependency[]> {
    const edges = foreignEdges(queue, id, children);
    if (edges.length > 0) await this.link(edges);
    return edges;
  }

  /**
   * Writes the upstream half of each dependency; returns the upstream job's state, or `missing`. The upstream jobs of new dependents
   * (kind 1) need a record, others may have been removed since; those of batches (kind m) are not kept.
   */
  async link(edges: readonly Dependency[], kind: '0' | '1' | typeof MEMBER = '0'): Promise<string[]> {
    const states: string[] = new Array(edges.length).fill('missing');
    for (const [queue, indexes] of groupBy(edges, (edge) => edge.upQueue)) {
      for (const page of pagesOf(indexes)) {
        const args: Arg[] = [this.view.time(), kind];
        for (const i of page) args.push(edges[i]!.upId, dependentName(edges[i]!));
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
        for (const i of page) args.push(edges[i]!.downId, upstreamName(edges[i]!), stateOf(i));
        if ((await this.view.run('deliver_ends', queue, args)).reply === 1) flagged.push(queue);
      }
    }
    return flagged;
  }

  /** Links the dependencies once more and delivers those whose upstream job has ended since. */
  async settle(edges: readonly Dependency[], kind: '0' | typeof MEMBER = '0'): Promise<void> {
    if (edges.length === 0) return;
    const states = await this.link(edges, kind);
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
    const members: Dependency[] = [];
    const recent = this.view.now() - RESERVED;
    for (const [field, policy] of await this.#someFields(queue, 'edges', this.#cursors)) {
      const [downId, rest] = splitOnce(field);
      const [upQueue, upId] = splitOnce(rest);
      const isMember = policy.startsWith(MEMBER);
      // A process may be about to add a member that it has reserved.
      if (isMember ? Number(policy.slice(1)) > recent : upQueue === '') continue;
      const edge = { downQueue: queue, downId, upQueue: upQueue === '' ? queue : upQueue, upId };
      (isMember ? members : edges).push(edge);
    }
    await this.settle(edges);
    await this.settle(members, MEMBER);
  }

  /** New members of batches that need other jobs may have been cancelled as they were added. */
  async settleMembers(queue: string, jobs: readonly NewJob[]): Promise<void> {
    const members = jobs.filter(({ spec }) => spec.batch && spec.needs);
    await this.settle(
      members.map(({ id, spec }) => ({
        downQueue: spec.batch!.queue,
        downId: spec.batch!.id,
        upQueue: queue,
        upId: id,
      })),
      MEMBER,
    );
  }

  /** These jobs have ended: the records of their upstream jobs in other queues need not be kept for them. */
  release(queue: string, ended: readonly { id: string; spec: Spec }[]): void {
    const edges = ended.flatMap(({ id, spec }) => foreignEdges(queue, id, spec.needs));
    if (edges.length > 0) this.#release(edges).catch(() => {}); // a sweep does it then
  }

  /** Checks some kept records again: a process may have died before it released them, or before it added the dependent. */
  async recheckKept(queue: string): Promise<void> {
    const edges: Dependency[] = [];
    for (const [field] of await this.#someFields(queue, 'kept_by', this.#keptCursors)) {
      const [upId, holder] = splitOnce(field);
      if (holder === WAITER) continue;
      const [downQueue, downId] = splitOnce(holder);
      edges.push({ downQueue: downQueue === '' ? queue : downQueue, downId, upQueue: queue, upId });
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
        for (const i of page) args.push(edges[i]!.upId, dependentName(edges[i]!));
        await this.view.run('release_kept', queue, args);
      }
    }
  }

  /** About a hundred fields of a hash and their values; the next call continues after them. */
  async #someFields(queue: string, name: string, cursors: Map<string, string>): Promise<[string, string][]> {
    const key = `${this.view.keys.queue(queue).stem}${name}`;
    const cursor = cursors.get(queue) ?? '0';
    const [next, flat] = (await this.view.client.call('HSCAN', key, cursor, 'COUNT', '100')) as [Buffer, Buffer[]];
    if (next.toString() === '0') cursors.delete(queue);
    else cursors.set(queue, next.toString());
    return pairs(flat);
  }
}

/** How each side of a dependency names the other: its own queue is empty there. */
function dependentName({ downQueue, downId, upQueue }: Dependency): string {
  return memberName({ queue: downQueue, id: downId }, upQueue);
}

function upstreamName({ downQueue, upQueue, upId }: Dependency): string {
  return memberName({ queue: upQueue, id: upId }, downQueue);
}

/** Dependencies of a job on jobs of other queues. */
function foreignEdges(queue: string, id: string, needs: readonly Need[] = []): Dependency[] {
  return needs
    .filter((need) => need.queue !== queue)
    .map((need) => ({ downQueue: queue, downId: id, upQueue: need.queue, upId: need.id }));
}

function pagesOf(indexes: readonly number[]): number[][] {
  const pages: number[][] = [];
  for (let i = 0; i < indexes.length; i += PAGE) pages.push(indexes.slice(i, i + PAGE));
  return pages;
}
