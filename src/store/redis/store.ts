import { randomBytes } from 'node:crypto';
import { CroreError } from '../../errors.js';
import type { Bytes, Job, Lease, NewJob } from '../../job/job.js';
import { DEFAULT_SPEC, keepOf } from '../../job/spec.js';
import {
  type AddOutcome,
  type Capacity,
  type Claim,
  type Counts,
  CREATED,
  type EventPage,
  type EventStore,
  FULL,
  type JobPage,
  type ListOptions,
  type LostEntry,
  type NewSchedule,
  type NewSession,
  type ProgressUpdate,
  type QueueLimits,
  type QueueSettings,
  type Schedule,
  type ScheduleStore,
  SERVER_SESSION,
  type Settlement,
  type Signal,
  type SourceStep,
  type SourceStore,
  type Store,
  type SweepOptions,
  type SweepResult,
  type WorkerInfo,
  type WorkerSession,
} from '../store.js';
import type { Again, Arg, RedisClient, Reply } from './connection/client.js';
import { Signals } from './connection/signals.js';
import { Dependencies } from './dependencies.js';
import type { Keys } from './keys.js';
import { asLost, type FoundLease, latestFirst } from './leases.js';
import { count, get, leasesOf, list, queues, rawSessions, readEvents, text, type View, workers } from './reads.js';
import {
  addArguments,
  capacityText,
  doneArguments,
  doneTaskArguments,
  groupedArguments,
  limitsText,
  plainArguments,
  readLimits,
  settleArguments,
} from './records/arguments.js';
import { freedKey } from './records/codec.js';
import { readEntries } from './records/entries.js';
import { Registry } from './registry.js';
import { Schedules } from './schedules.js';
import type { ScriptName } from './scripts.js';
import { asBuffer, RedisRawStore } from './tasks/raw-store.js';

/** Bytes of log kept per job. */
const LOG_LIMIT = 65_536;
/** Maximum number of dead workers' leases handled per call. */
const REMAINS = 500;

export interface RedisStoreOptions {
  client: RedisClient;
  keys: Keys;
  /** Opens the pub/sub connection. */
  subscriber: ConstructorParameters<typeof Signals>[0];
  /** The server's clock minus ours. */
  skew: number;
  warnings: readonly string[];
  threadUrl?: string;
  /** Replaces the server's clock in tests. */
  clock?: () => number;
}

export class RedisStore implements Store {
  readonly schedules: ScheduleStore = {
    put: (schedule) => this.#putSchedule(schedule),
    fire: (schedule, firing) => this.#fireSchedule(schedule, firing),
    list: () => this.#listSchedules(),
    remove: (name) => this.#removeSchedule(name),
  };
  readonly events: EventStore = {
    record: (queue, ms) => this.#recordEvents(queue, ms),
    read: (queue, after, limit) => this.#readEvents(queue, after, limit),
  };
  readonly sources: SourceStore = {
    add: (queue, jobs, step) => this.#addFromSource(queue, jobs, step),
    position: (queue, source) => this.#sourcePosition(queue, source),
  };
  readonly maxParallelClaims = 3;
  readonly warnings: readonly string[];
  readonly threadUrl?: string;
  readonly raw: RedisRawStore;
  readonly #client: RedisClient;
  readonly #keys: Keys;
  readonly #edges: Dependencies;
  readonly #view: View;
  readonly #signals: Signals;
  readonly #schedules: Schedules;
  readonly #registry: Registry;
  readonly #skew: number;
  readonly #clock: (() => number) | undefined;

  constructor(options: RedisStoreOptions) {
    this.#client = options.client;
    this.#keys = options.keys;
    this.#skew = options.skew;
    this.#clock = options.clock;
    this.warnings = options.warnings;
    this.threadUrl = options.threadUrl;
    this.#view = { client: this.#client, keys: this.#keys, time: () => this.#time() };
    this.#edges = new Dependencies(this.#client, this.#keys, () => this.#time());
    this.#signals = new Signals(options.subscriber);
    this.#schedules = new Schedules(this.#view, () => this.now());
    this.#registry = new Registry(this.#view);
    const register = (queue: string) => this.#registry.add(queue);
    this.raw = new RedisRawStore({ view: this.#view, signals: this.#signals, register });
    // A server that restarted empty has also lost the names of its queues.
    this.#client.redis.on('ready', this.#registry.forgetAll);
  }

  now(): number {
    return this.#clock ? this.#clock() : Date.now() + this.#skew;
  }

  async push(queue: string, tasks: readonly Bytes[], limits: Capacity = {}): Promise<boolean> {
    await this.#registry.add(queue);
    const bytes = tasks.reduce((sum, task) => sum + task.length, 0);
    const args: Arg[] = [this.#time(), capacityText(limits.count), capacityText(limits.bytes), String(bytes)];
    for (const task of tasks) args.push(asBuffer(task));
    return (await this.#bring('push', queue, args, false)).reply === 1;
  }

  async add(queue: string, jobs: readonly NewJob[], limits: Capacity = {}): Promise<AddOutcome[]> {
    await this.#registry.add(queue);
    const [now, createdAt] = [this.#time(), this.now()];
    const unlimited = limits.count === undefined && limits.bytes === undefined;
    const plain = unlimited ? plainArguments(jobs, now, createdAt) : undefined;
    if (plain) {
      const { reply, repeated } = await this.#bring('add_plain', queue, plain, (args) => {
        args[2] = '0'; // a second try may find its own ids
      });
      return outcomes(jobs, reply as Reply[], repeated);
    }
    const grouped = unlimited ? groupedArguments(jobs, now, createdAt) : undefined;
    if (grouped) {
      const { reply, repeated } = await this.#bring('add_grouped', queue, grouped);
      return outcomes(jobs, reply as Reply[], repeated);
    }
    const { reply, repeated } = await this.#addAny(
      'add',
      queue,
      jobs,
      addArguments(queue, jobs, now, createdAt, limits),
    );
    return outcomes(jobs, reply, repeated);
  }

  async #addFromSource(queue: string, jobs: readonly NewJob[], mark: SourceStep): Promise<AddOutcome[] | 'stale'> {
    await this.#registry.add(queue);
    const args = addArguments(queue, jobs, this.#time(), this.now(), {});
    args.push(mark.source, mark.from, mark.to);
    // If the first try succeeded, a second one finds the new source position and changes nothing.
    const { reply } = await this.#addAny('add_from_source', queue, jobs, args);
    return text(reply[0] ?? null) === 'stale' ? 'stale' : outcomes(jobs, reply, false);
  }

  async #sourcePosition(queue: string, source: string): Promise<string> {
    return text((await this.#run('source_position', queue, [this.#time(), source])).reply);
  }

  async claim({ queue, worker, lease }: WorkerSession, n: number): Promise<Claim> {
    const nonce = randomBytes(9).toString('base64url');
    const args = [this.#time(), worker, String(n), nonce, String(lease)];
    const { reply } = await this.#run('claim', queue, args, false);
    const [status, more, next, first, ids, bodies, runs] = reply as [Buffer, number, Buffer, number, ...Buffer[]];
    const nextAt = text(next);
    return {
      status: text(status) as Claim['status'],
      entries: ids ? readEntries(queue, worker, { first, nonce, ids, bodies: bodies!, runs: runs! }) : [],
      more: more === 1,
      nextAt: nextAt === '' ? undefined : Number(nextAt),
    };
  }

  async settle(queue: string, settlements: readonly Settlement[]): Promise<boolean[]> {
    if (settlements.length === 0) return [];
    const jobs = doneArguments(settlements, this.#time());
    if (jobs) return this.#done('done', queue, jobs, settlements.length);
    const tasks = doneTaskArguments(settlements, this.#time());
    if (tasks) return this.#done('done_tasks', queue, tasks, settlements.length);
    const args = settleArguments(settlements, this.#time(), this.now());
    const { reply, repeated } = await this.#run('settle', queue, args);
    return this.#applied(queue, reply as number[], repeated);
  }

  async recordProgress(queue: string, lease: Lease, note: ProgressUpdate): Promise<boolean> {
    const progress = note.progress === undefined ? '' : `=${note.progress}`;
    const args = [this.#time(), lease.token, lease.id ?? '', progress, note.log ?? '', String(LOG_LIMIT)];
    return (await this.#run('record_progress', queue, args)).reply === 1;
  }

  async join(queue: string, worker: string, session: NewSession): Promise<void> {
    await this.#registry.add(queue);
    await this.#run('join', queue, [
      this.#time(),
      worker,
      String(session.lease),
      session.info,
      session.raw ? '1' : '0',
    ]);
  }

  async heartbeat(sessions: readonly WorkerSession[]): Promise<boolean[]> {
    return Promise.all(
      sessions.map(async ({ queue, worker, lease }) => {
        const { reply } = await this.#run('heartbeat', queue, [this.#time(), worker, String(lease)]);
        return reply === 1;
      }),
    );
  }

  async leave(queue: string, worker: string): Promise<void> {
    if ((await this.leasesOf(queue, worker)).length > 0) return;
    await this.#run('leave', queue, [this.#time(), worker, '0']);
  }

  async leasesOf(queue: string, worker: string): Promise<Lease[]> {
    return (await leasesOf(this.#view, queue, (name) => name === worker)).map((found) => found.lease);
  }

  async sweep(queue: string, options: SweepOptions): Promise<SweepResult> {
    const kept = String(DEFAULT_SPEC.keep.done.ms);
    const args = [this.#time(), String(options.lease), String(options.every), kept];
    const reply = (await this.#run('sweep', queue, args)).reply as Reply[] | null;
    if (reply === null) return { lost: [], more: false };
    const [more, outbox, edges, unused, count] = reply as number[];
    if (unused === 1) await this.#registry.remove(queue);
    const left = outbox === 1 && !(await this.#edges.drain(queue));
    if (edges === 1) await this.#edges.recheck(queue);
    const workers = reply.slice(5, 5 + count!).map((id) => text(id));
    const late = reply.slice(5 + count!).map((id) => text(id));
    const lost: LostEntry[] = [];
    if (workers.length > 0) lost.push(...(await this.#remains(queue, new Set(workers))));
    for (const job of await this.get(queue, late)) {
      if (job?.state !== 'active') continue;
      lost.push({ lease: { worker: job.worker!, token: job.token!, id: job.id }, job, why: 'reservation' });
    }
    return { lost, more: more === 1 || left || lost.length > 0 };
  }

  get(queue: string, ids: readonly string[]): Promise<(Job | undefined)[]> {
    return get(this.#view, queue, ids);
  }

  list(queue: string, options: ListOptions): Promise<JobPage> {
    return list(this.#view, queue, options);
  }

  count(queue: string): Promise<Counts> {
    return count(this.#view, queue);
  }

  queues(): Promise<string[]> {
    return queues(this.#view);
  }

  workers(queue: string): Promise<WorkerInfo[]> {
    return workers(this.#view, queue);
  }

  reportSuccess(queue: string, ids: readonly string[]): Promise<boolean[]> {
    return this.#end('report_success', 'done', queue, ids);
  }

  cancel(queue: string, ids: readonly string[]): Promise<boolean[]> {
    return this.#end('cancel', 'cancelled', queue, ids);
  }

  async remove(queue: string, ids: readonly string[]): Promise<boolean[]> {
    const { reply, repeated } = await this.#run('remove', queue, [this.#time(), ...ids]);
    return (reply as number[]).map((flag) => repeated || flag === 1);
  }

  async retryDead(queue: string, ids: readonly string[]): Promise<boolean[]> {
    const { reply, repeated } = await this.#run('retry_dead', queue, [this.#time(), ...ids]);
    return (reply as number[]).map((flag) => repeated || flag === 1);
  }

  async #pause(queue: string, paused: boolean): Promise<void> {
    await this.#registry.add(queue);
    await this.#run('pause', queue, [this.#time(), paused ? '1' : '0']);
  }

  async #setLimits(queue: string, limits: QueueLimits): Promise<void> {
    await this.#registry.add(queue);
    await this.#run('set_limits', queue, [this.#time(), limitsText(limits)]);
  }

  async settings(queue: string): Promise<QueueSettings> {
    const key = `${this.#keys.queue(queue).stem}meta`;
    const [paused, limits] = (await this.#client.call('HMGET', key, 'paused', 'pace')) as Reply[];
    return { paused: paused !== null, limits: readLimits(text(limits!)) };
  }

  async configure(queue: string, { paused, limits }: Partial<QueueSettings>): Promise<void> {
    if (paused !== undefined) await this.#pause(queue, paused);
    if (limits !== undefined) await this.#setLimits(queue, limits);
  }

  async obliterate(queue: string): Promise<void> {
    while ((await this.#run('obliterate', queue, [this.#time()])).reply !== 1);
    await this.#registry.remove(queue);
  }

  async #putSchedule(schedule: NewSchedule): Promise<Schedule> {
    await this.#registry.add(schedule.queue);
    return this.#schedules.put(schedule);
  }

  #fireSchedule(
    schedule: Schedule,
    firing: { jobs: readonly NewJob[]; next?: number; last?: number },
  ): Promise<boolean> {
    return this.#schedules.fire(schedule, firing);
  }

  #listSchedules(): Promise<Schedule[]> {
    return this.#schedules.all();
  }

  #removeSchedule(name: string): Promise<boolean> {
    return this.#schedules.drop(name);
  }

  async watchForEnd(queue: string, ids: readonly string[]): Promise<void> {
    await this.#run('watch_for_end', queue, [this.#time(), ...ids]);
  }

  async #recordEvents(queue: string, ms: number): Promise<string> {
    await this.#registry.add(queue);
    return text((await this.#run('record_events', queue, [this.#time(), String(ms)])).reply);
  }

  async #readEvents(queue: string, after: string, limit: number): Promise<EventPage> {
    const { reply } = await this.#run('read_events', queue, [this.#time(), after, String(limit)]);
    return readEvents(reply as Reply[]);
  }

  subscribe(queue: string, listener: (signal: Signal) => void): () => void {
    return this.#signals.listen(this.#keys.queue(queue).channel, listener);
  }

  async close(): Promise<void> {
    this.#signals.close();
    this.#client.redis.off('ready', this.#registry.forgetAll);
    await this.#client.close();
  }

  /** Empty: the script uses the server's clock. */
  #time(): string {
    return this.#clock ? String(this.#clock()) : '';
  }

  #run(
    name: ScriptName,
    queue: string,
    args: Arg[],
    again: Again = true,
  ): Promise<{ reply: Reply; repeated: boolean }> {
    const { list, stem } = this.#keys.queue(queue);
    return this.#client.run(name, [list, stem], args, again);
  }

  /** Runs a script that adds work, and notifies workers in this process without waiting for the server's signal. */
  #bring(
    name: ScriptName,
    queue: string,
    args: Arg[],
    again: Again = true,
  ): Promise<{ reply: Reply; repeated: boolean }> {
    const running = this.#run(name, queue, args, again);
    this.#signals.nudge(this.#keys.queue(queue).channel);
    return running;
  }

  /** Adds jobs that may depend on jobs of other queues. */
  async #addAny(
    name: 'add' | 'add_from_source',
    queue: string,
    jobs: readonly NewJob[],
    args: Arg[],
  ): Promise<{ reply: Reply[]; repeated: boolean }> {
    const edges = this.#edges.foreign(queue, jobs);
    const states = await this.#edges.link(edges);
    const missing = states.indexOf('missing');
    if (missing >= 0) throw unknown(edges[missing]!.upQueue, edges[missing]!.upId);
    const { reply, repeated } = await this.#bring(name, queue, args);
    const [first, second] = reply as Reply[];
    if (first !== undefined && text(first) === 'unknown') throw unknown(queue, text(second!));
    await this.#edges.settle(edges);
    return { reply: reply as Reply[], repeated };
  }

  /**
   * Ends jobs by id, without a token; reads their retention and unique keys from the records first, as these never
   * change.
   */
  async #end(
    name: 'report_success' | 'cancel',
    state: 'done' | 'cancelled',
    queue: string,
    ids: readonly string[],
  ): Promise<boolean[]> {
    const known = (await this.get(queue, ids)).filter((job) => job !== undefined);
    if (known.length === 0) return ids.map(() => false);
    const args: Arg[] = [this.#time()];
    for (const { id, spec } of known) {
      const keep = keepOf(spec, state);
      args.push(id, String(keep.ms), String(keep.count), freedKey({ spec }) ?? '');
    }
    const { reply, repeated } = await this.#run(name, queue, args);
    const applied = this.#applied(queue, reply as number[], repeated);
    const ended = new Set(known.filter((_job, i) => applied[i]).map((job) => job.id));
    return ids.map((id) => ended.delete(id));
  }

  /** Runs the fast paths of settle, whose reply lists only refused entries. */
  async #done(name: 'done' | 'done_tasks', queue: string, args: Arg[], count: number): Promise<boolean[]> {
    const { reply, repeated } = await this.#run(name, queue, args);
    const [outbox, ...stale] = reply as number[];
    const applied = new Array<boolean>(count).fill(true);
    if (!repeated) for (const index of stale) applied[index - 1] = false;
    this.#deliver(queue, outbox!);
    return applied;
  }

  /** Reads the flags of a reply; an entry that a lost first try may have settled counts as settled. */
  #applied(queue: string, flags: number[], repeated: boolean): boolean[] {
    this.#deliver(queue, flags[0]!);
    return flags.slice(1).map((flag) => repeated || flag === 1);
  }

  /** Notifies dependents in other slots as soon as possible; if this fails, a sweep does it. */
  #deliver(queue: string, outbox: number): void {
    if (outbox === 1) this.#edges.drain(queue).catch(() => {});
  }

  /** The leases of dead workers, latest claim first; the session of a worker that holds nothing any more is removed. */
  async #remains(queue: string, workers: ReadonlySet<string>): Promise<LostEntry[]> {
    const leases = await leasesOf(this.#view, queue, (worker) => workers.has(worker));
    const found = latestFirst(await this.#notHandedOn(queue, leases));
    const holders = new Set(found.map(({ lease }) => lease.worker));
    for (const worker of workers) {
      if (!holders.has(worker)) await this.#run('leave', queue, [this.#time(), worker, '1']);
    }
    const chunk = found.slice(0, REMAINS);
    const jobs = await this.get(
      queue,
      chunk.map(({ lease }) => lease.id ?? ''),
    );
    const raw = await rawSessions(this.#view, queue, [...holders]);
    return chunk.map((one, i) => asLost(one, jobs[i], raw.has(one.lease.worker))).filter((lost) => lost !== undefined);
  }

  /** Omits jobs that a server session has delivered and whose reservation has not ended. */
  async #notHandedOn(queue: string, found: FoundLease[]): Promise<FoundLease[]> {
    const handed = found.filter(({ lease }) => lease.id !== undefined && lease.worker.startsWith(SERVER_SESSION));
    const reserved = new Set<FoundLease>();
    const key = `${this.#keys.queue(queue).stem}reserved`;
    for (let i = 0; i < handed.length; i += REMAINS) {
      const page = handed.slice(i, i + REMAINS);
      const scores = (await this.#client.call('ZMSCORE', key, ...page.map(({ lease }) => lease.id!))) as Reply[];
      page.forEach((one, k) => {
        if (scores[k] !== null) reserved.add(one);
      });
    }
    return found.filter((one) => !reserved.has(one));
  }
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
