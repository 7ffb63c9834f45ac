import type { NewJob } from '../../job/job.js';
import type { Arg, RedisClient, Reply } from './client.js';
import type { Keys } from './keys.js';

const NUL = '\0';

interface Edge {
  downQueue: string;
  downId: string;
  upQueue: string;
  upId: string;
}

/**
 * Dependencies between jobs of different queues, which live in different slots. An edge is written in both: as a field the
 * dependent still waits for, and as a member of the upstream's dependents. Each step can be repeated.
 */
export class Edges {
  readonly #cursors = new Map<string, string>();

  constructor(
    private readonly client: RedisClient,
    private readonly keys: Keys,
    private readonly now: () => string,
  ) {}

  /** The edges of these jobs that lead to other queues. */
  foreign(queue: string, jobs: readonly NewJob[]): Edge[] {
    const edges: Edge[] = [];
    for (const job of jobs) {
      for (const need of job.spec.needs ?? []) {
        if (need.queue === queue) continue;
        edges.push({ downQueue: queue, downId: job.id, upQueue: need.queue, upId: need.id });
      }
    }
    return edges;
  }

  /** Writes the upstream half of each edge; returns the upstream's state, or `missing`. */
  async link(edges: readonly Edge[]): Promise<string[]> {
    const states: string[] = new Array(edges.length).fill('missing');
    for (const [queue, indexes] of groupBy(edges, (edge) => edge.upQueue)) {
      const args: Arg[] = [this.now()];
      for (const i of indexes) args.push(edges[i]!.upId, `${edges[i]!.downQueue}${NUL}${edges[i]!.downId}`);
      const reply = (await this.#run('link', queue, args)) as Buffer[];
      indexes.forEach((i, k) => {
        states[i] = reply[k]!.toString();
      });
    }
    return states;
  }

  /** Tells dependents that these upstreams have ended. */
  async deliver(edges: readonly Edge[], states: readonly string[]): Promise<void> {
    for (const [queue, indexes] of groupBy(edges, (edge) => edge.downQueue)) {
      const args: Arg[] = [this.now()];
      for (const i of indexes) {
        args.push(edges[i]!.downId, `${edges[i]!.upQueue}${NUL}${edges[i]!.upId}`, states[i]!);
      }
      if ((await this.#run('deliver', queue, args)) === 1) await this.drainOutbox(queue);
    }
  }

  /** Links edges once more and delivers those whose upstream has ended meanwhile. */
  async settle(edges: readonly Edge[]): Promise<void> {
    if (edges.length === 0) return;
    const states = await this.link(edges);
    const ended = edges.map((_edge, i) => i).filter((i) => /^(done|dead|cancelled|missing)$/.test(states[i]!));
    await this.deliver(
      ended.map((i) => edges[i]!),
      ended.map((i) => states[i]!),
    );
  }

  /** Delivers what settled jobs owe to dependents in other queues, or to more of them than one script should touch. */
  async drainOutbox(queue: string): Promise<void> {
    let told: Arg[] = [];
    for (;;) {
      const reply = (await this.#run('outbox', queue, [this.now(), ...told])) as Buffer[] | null;
      if (reply === null) return;
      const [upId, state] = [reply[0]!.toString(), reply[1]!.toString()];
      const members = reply.slice(2);
      const edges = members.map((member): Edge => {
        const [downQueue, downId] = splitOnce(member.toString());
        return { downQueue, downId, upQueue: queue, upId };
      });
      await this.deliver(edges, new Array(edges.length).fill(state));
      told = members.length > 0 ? [upId, ...members] : [];
    }
  }

  /** Looks at some blocked jobs again: a process may have died between the two halves of an edge. */
  async recheck(queue: string): Promise<void> {
    const cursor = this.#cursors.get(queue) ?? '0';
    const edgesKey = `${this.keys.queue(queue).stem}edges`;
    const [next, fields] = (await this.client.call('HSCAN', edgesKey, cursor, 'COUNT', '100')) as [Buffer, Buffer[]];
    this.#cursors.set(queue, next.toString());
    const edges: Edge[] = [];
    for (let i = 0; i < fields.length; i += 2) {
      const [downId, rest] = splitOnce(fields[i]!.toString());
      const [upQueue, upId] = splitOnce(rest);
      if (upQueue !== '') edges.push({ downQueue: queue, downId, upQueue, upId });
    }
    await this.settle(edges);
  }

  async #run(name: 'link' | 'deliver' | 'outbox', queue: string, args: Arg[]): Promise<Reply> {
    const { list, stem } = this.keys.queue(queue);
    return (await this.client.run(name, [list, stem], args)).reply;
  }
}

function splitOnce(text: string): [string, string] {
  const cut = text.indexOf(NUL);
  return [text.slice(0, cut), text.slice(cut + 1)];
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
