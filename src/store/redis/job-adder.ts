import { CroreError } from '../../errors.js';
import type { Bytes, NewJob } from '../../job/job.js';
import type { Handover, WaitingClaim } from '../handover.js';
import { type AddOutcome, type Capacity, CREATED, FULL, type SourceStep, type SourceStore } from '../store.js';
import type { RedisBatches } from './batches.js';
import type { Again, Arg, Reply, ScriptReply } from './connection/client.js';
import type { Signals } from './connection/signals.js';
import type { Dependencies } from './dependencies.js';
import { addArguments, capacityText, groupedArguments, IDS, plainArguments } from './records/arguments.js';
import { pack } from './records/msgpack.js';
import type { Registry } from './registry.js';
import type { ScriptName } from './scripts.js';
import { asBuffer } from './tasks/raw-store.js';
import { text, type View } from './view.js';

/** The scripts that claim for a waiting worker, too. */
const BOTH: Partial<Record<ScriptName, ScriptName>> = { add_plain: 'add_and_claim', push: 'push_and_claim' };
/** Where the worker is in the arguments of a claim. */
const WORKER_AT = 1;
/** Where the packed jobs are in the arguments of `add_plain`, and the tasks in those of `push`. */
const [JOBS_AT, TASKS_AT] = [3, 5];

/** Adds jobs and raw tasks: a script for plain jobs, one for plain jobs in groups, and one for everything else. */
export class JobAdder {
  /** If the first try succeeded, a second one finds the new source position and changes nothing. */
  readonly sources: SourceStore = {
    add: async (queue, jobs, step) => this.#addFromSource(queue, jobs, step),
    position: async (queue, source) =>
      text((await this.view.run('source_position', queue, [this.view.time(), source])).reply),
  };

  constructor(
    private readonly view: View,
    private readonly registry: Registry,
    private readonly signals: Signals,
    private readonly dependencies: Dependencies,
    private readonly batches: RedisBatches,
    private readonly handover: Handover<Arg[], ScriptReply>,
  ) {}

  async push(queue: string, tasks: readonly Bytes[], limits: Capacity): Promise<boolean> {
    const registering = this.registry.add(queue);
    if (registering) await registering;
    const bytes = tasks.reduce((sum, task) => sum + task.length, 0);
    const args: Arg[] = [this.view.time(), capacityText(limits.count), capacityText(limits.bytes), String(bytes)];
    args.push(this.signals.origin);
    for (const task of tasks) args.push(asBuffer(task));
    return (await this.#runAndSignal('push', queue, args, tasks.length, false)).reply === 1;
  }

  async add(queue: string, jobs: readonly NewJob[], limits: Capacity): Promise<AddOutcome[]> {
    const registering = this.registry.add(queue);
    if (registering) await registering;
    const [now, createdAt] = [this.view.time(), this.view.now()];
    const unlimited = limits.count === undefined && limits.bytes === undefined;
    const plain = unlimited ? plainArguments(jobs, now, createdAt) : undefined;
    if (plain) {
      plain.push(this.signals.origin);
      const { reply, repeated } = await this.#runAndSignal('add_plain', queue, plain, jobs.length, (args) => {
        if (args.at(-3) === IDS.fresh) args[args.length - 3] = IDS.chosen; // a second try may find its own ids
      });
      return outcomes(jobs, reply as Reply[], repeated);
    }
    const grouped = unlimited ? groupedArguments(jobs, now, createdAt) : undefined;
    if (grouped) {
      grouped.push(this.signals.origin);
      const { reply, repeated } = await this.#runAndSignal('add_grouped', queue, grouped, jobs.length);
      return outcomes(jobs, reply as Reply[], repeated);
    }
    const args = addArguments(queue, jobs, now, createdAt, limits);
    const { reply, repeated } = await this.#addAny('add', queue, jobs, args);
    return outcomes(jobs, reply, repeated);
  }

  async #addFromSource(queue: string, jobs: readonly NewJob[], step: SourceStep): Promise<AddOutcome[] | 'stale'> {
    await this.registry.add(queue);
    const args = addArguments(queue, jobs, this.view.time(), this.view.now(), {});
    args.push(step.source, step.from, step.to);
    const { reply } = await this.#addAny('add_from_source', queue, jobs, args);
    return text(reply[0] ?? null) === 'stale' ? 'stale' : outcomes(jobs, reply, false);
  }

  /** Adds jobs that may depend on jobs of other queues. */
  async #addAny(
    name: 'add' | 'add_from_source',
    queue: string,
    jobs: readonly NewJob[],
    args: Arg[],
  ): Promise<{ reply: Reply[]; repeated: boolean }> {
    const edges = this.dependencies.foreign(queue, jobs);
    // First of all, as it refuses jobs for batches that are closed.
    const release = await this.batches.reserve(queue, jobs);
    const states = await this.dependencies.link(edges, '1');
    const missing = states.indexOf('missing');
    if (missing >= 0) {
      await release(() => false);
      throw unknown(edges[missing]!.upQueue, edges[missing]!.upId);
    }
    const { reply, repeated } = await this.#runAndSignal(name, queue, args, jobs.length);
    const [first, second] = reply as Reply[];
    const isRefused = first !== undefined && /^(unknown|stale)$/.test(text(first));
    const added = isRefused ? [] : outcomes(jobs, reply as Reply[], repeated);
    const created = new Set(jobs.filter((_job, i) => added[i] === CREATED));
    await release((job) => created.has(job));
    if (isRefused && text(first) === 'unknown') throw unknown(queue, text(second!));
    await this.dependencies.settle(edges);
    await this.dependencies.settleMembers(queue, [...created]);
    return { reply: reply as Reply[], repeated };
  }

  /**
   * Notifies workers in this process without waiting for the server's signal, which they then do not get: their claims follow on the same connection, the
   * first of them in the same script. If the call was repeated, they may have overtaken it.
   */
  async #runAndSignal(
    name: ScriptName,
    queue: string,
    args: Arg[],
    count: number,
    again: Again = true,
  ): Promise<ScriptReply> {
    const { channel } = this.view.keys.queue(queue);
    const claims = this.handover.collect(queue, () => this.signals.nudge(channel));
    const both = BOTH[name];
    const first =
      both !== undefined && claims[0] !== undefined && claims[0].count >= count ? claims.shift() : undefined;
    const running =
      both && first ? this.#runBoth(both, queue, args, first, again) : this.view.run(name, queue, args, again);
    for (const claim of claims) claim.send();
    let tries = 0;
    try {
      const result = await running;
      tries = result.tries;
      return result;
    } finally {
      if (tries !== 1) this.signals.nudge(channel);
    }
  }

  /** Adds, and claims for a worker that waits: what it gets never waits in the queue. */
  async #runBoth(
    name: ScriptName,
    queue: string,
    args: Arg[],
    claim: WaitingClaim<Arg[], ScriptReply>,
    again: Again,
  ): Promise<ScriptReply> {
    const both = [...claim.args, ...args.slice(1)];
    // The first try may have claimed: the second one does not, and the worker looks for what it may have got.
    const claimless: Again =
      typeof again === 'function'
        ? (sent) => {
            again(sent);
            sent[WORKER_AT] = '';
          }
        : again;
    try {
      const { reply, repeated, tries } = await this.view.run(name, queue, both, claimless);
      const [added, claimed] = isHandedOver(reply) ? handedOver(name, reply, args) : (reply as [Reply, Reply]);
      if (repeated) claim.lose();
      else claim.answer({ reply: claimed, repeated, tries });
      // The handler starts before the producer is answered, who would otherwise delay it by a tenth.
      await new Promise((resolve) => setImmediate(resolve));
      return { reply: added, repeated, tries };
    } catch (error) {
      claim.fail(error as Error);
      throw error;
    }
  }
}

/** The time and the first number of the claim: everything that was added is leased to the worker. */
function isHandedOver(reply: Reply): reply is [now: number, first: number] {
  return Array.isArray(reply) && typeof reply[1] === 'number';
}

/** The replies of both scripts, with the entries as they were sent. */
function handedOver(name: ScriptName, [now, first]: [now: number, first: number], args: Arg[]): [Reply, Reply] {
  const claimed: Reply[] = [Buffer.from('ok'), 0, null, now, first];
  if (name === 'push_and_claim') return [1, [...claimed, 1, pack(args.slice(TASKS_AT))]];
  return [[], [...claimed, args[JOBS_AT] as Buffer]];
}

function unknown(queue: string, id: string): CroreError {
  return new CroreError('UNKNOWN_UPSTREAM', `upstream job '${id}' of queue '${queue}' does not exist`);
}

/**
 * Every job was created except those in the reply; finding our own id after a lost reply means that our first try added
 * it.
 */
function outcomes(jobs: readonly NewJob[], reply: Reply[], repeated: boolean): AddOutcome[] {
  const result: AddOutcome[] = new Array(jobs.length).fill(CREATED);
  for (let i = 0; i < reply.length; i += 3) {
    const index = (reply[i] as number) - 1;
    const id = text(reply[i + 2]!);
    const outcome = text(reply[i + 1]!) as 'duplicate' | 'replaced' | 'extended' | 'full';
    if (outcome === 'full') result[index] = FULL;
    else if (!repeated || id !== jobs[index]!.id) result[index] = { outcome, id };
  }
  return result;
}
