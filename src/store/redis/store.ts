import { writeAction } from '../../job/attempt.js';
import { newNonce } from '../../job/id.js';
import {
  type Bytes,
  isTerminal,
  type Job,
  type Lease,
  type NewJob,
  type Spec,
  type State,
  type Terminal,
} from '../../job/job.js';
import { DEFAULT_SPEC, keepOf } from '../../job/spec.js';
import { progressLine } from '../../job/timed-lines.js';
import { Handover } from '../handover.js';
import { markedClaim } from '../lost-claim.js';
import { changeLine } from '../manual-changes.js';
import { type SettleReply, settledInAll } from '../repeated-settle.js';
import type {
  AddOutcome,
  Capacity,
  Claim,
  Counts,
  Dependents,
  JobChanges,
  JobPage,
  ListOptions,
  MoveOutcome,
  NewSession,
  ProgressUpdate,
  QueueSettings,
  QuietQueue,
  Settlement,
  Signal,
  SourceStore,
  Store,
  SweepOptions,
  SweepResult,
  WorkerInfo,
  WorkerSession,
} from '../store.js';
import { RedisBatches } from './batches.js';
import type { Arg, RedisClient, Reply, ScriptReply } from './connection/client.js';
import { KeyWatch } from './connection/key-watch.js';
import { Signals } from './connection/signals.js';
import { Dependencies } from './dependencies.js';
import { RedisEvents } from './events.js';
import { RedisHistory } from './history.js';
import { JobAdder } from './job-adder.js';
import type { Keys } from './keys.js';
import { lostWithReservations, lostWithWorkers } from './lost-entries.js';
import { heartbeat, sweepQuiet, withReady } from './queue/many-queues.js';
import { Moves } from './queue/moves.js';
import { configure, settings } from './queue/settings.js';
import { count, dependents, get, leasesOf, list, queues, workers } from './reads.js';
import { doneArguments, parkArguments, settleArguments, updateArguments } from './records/arguments.js';
import { freedKey } from './records/codec.js';
import { isDoneTask, type Packed, readEntries } from './records/entries.js';
import { pack } from './records/msgpack.js';
import { Registry } from './registry.js';
import { RedisSchedules } from './schedules.js';
import { RedisRawStore } from './tasks/raw-store.js';
import { byBatch } from './tasks/task-batches.js';
import { text, View } from './view.js';

/** Bytes of log kept per job. */
const LOG_LIMIT = 65_536;

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
  readonly schedules: RedisSchedules;
  readonly events: RedisEvents;
  readonly sources: SourceStore;
  readonly batches: RedisBatches;
  readonly history: RedisHistory;
  readonly raw: RedisRawStore;
  readonly maxParallelClaims = 3;
  readonly warnings: readonly string[];
  readonly threadUrl?: string;
  readonly #view: View;
  readonly #registry: Registry;
  readonly #signals: Signals;
  readonly #keyWatch: KeyWatch;
  readonly #dependencies: Dependencies;
  readonly #handover = new Handover<Arg[], ScriptReply>();
  readonly #adder: JobAdder;
  readonly #moves: Moves;

  constructor(options: RedisStoreOptions) {
    this.warnings = options.warnings;
    this.threadUrl = options.threadUrl;
    this.#view = new View(options.client, options.keys, options.skew, options.clock);
    this.#registry = new Registry(this.#view);
    this.#keyWatch = new KeyWatch(options.client);
    const { subscriber } = options;
    this.#signals = new Signals(
      { ...subscriber, open: () => this.#keyWatch.follow(subscriber.open()) },
      options.keys,
      options.client.timeout,
      options.client.isOrdered ? newNonce() : '',
    );
    this.#dependencies = new Dependencies(this.#view);
    this.batches = new RedisBatches(this.#view);
    this.#adder = new JobAdder(
      this.#view,
      this.#registry,
      this.#signals,
      this.#dependencies,
      this.batches,
      this.#handover,
    );
    this.#moves = new Moves(this.#view, this.#registry);
    this.schedules = new RedisSchedules(this.#view, this.#registry, this.#keyWatch);
    this.events = new RedisEvents(this.#view, this.#registry);
    this.sources = this.#adder.sources;
    this.history = new RedisHistory(this.#view);
    this.raw = new RedisRawStore(this.#view, this.#registry, this.#signals);
    // A server that restarted empty has also lost the names of its queues.
    options.client.redis.on('ready', this.#registry.forgetAll);
  }

  now(): number {
    return this.#view.now();
  }

  push(queue: string, tasks: readonly Bytes[], limits: Capacity = {}): Promise<boolean> {
    return this.#adder.push(queue, tasks, limits);
  }

  add(queue: string, jobs: readonly NewJob[], limits: Capacity = {}): Promise<AddOutcome[]> {
    return this.#adder.add(queue, jobs, limits);
  }

  async claim({ queue, worker, lease }: WorkerSession, n: number, waits = false): Promise<Claim> {
    const nonce = newNonce();
    const channel = waits ? this.#signals.deliveryChannel : '';
    const args = [this.#view.time(), worker, String(n), nonce, String(lease), channel];
    const send = () => this.#view.run('claim', queue, args, false);
    const { reply } = await markedClaim(nonce, () => this.#handover.offer({ queue, args, count: n, send }) ?? send());
    const [status, more, next, now, first, ...entries] = reply as [Buffer, number, Buffer, number, number, ...Packed];
    const nextAt = text(next);
    return {
      status: text(status) as Claim['status'],
      entries: readEntries({ queue, worker, now, first, nonce }, entries),
      more: more === 1,
      nextAt: nextAt === '' ? undefined : Number(nextAt),
    };
  }

  async withdraw({ queue, worker }: WorkerSession): Promise<void> {
    await this.#view.run('withdraw', queue, [this.#view.time(), worker]);
  }

  async settle(queue: string, settlements: readonly Settlement[]): Promise<boolean[]> {
    if (settlements.length === 0) return [];
    if (settlements.some(({ outcome }) => outcome.to === 'blocked')) return this.#settleWithParks(queue, settlements);
    if (settlements.every(isDoneTask)) return this.#doneTasks(queue, settlements);
    const jobs = doneArguments(settlements, this.#view.time());
    const reply = jobs ? await this.#done(queue, jobs, settlements.length) : await this.#settleAny(queue, settlements);
    return this.#released(queue, settlements, await settledInAll(this, queue, settlements, reply));
  }

  async #settleAny(queue: string, settlements: readonly Settlement[]): Promise<SettleReply> {
    const args = settleArguments(settlements, this.#view.time(), this.now());
    const { reply, repeated } = await this.#view.run('settle', queue, args);
    return { applied: this.#applied(queue, reply as number[], false), repeated };
  }

  async recordProgress(queue: string, lease: Lease, note: ProgressUpdate): Promise<boolean> {
    const progress = note.progress === undefined ? ['', ''] : [`=${note.progress}`, progressLine(note.progress)];
    const args = [this.#view.time(), lease.token, lease.id ?? '', ...progress, note.log ?? '', String(LOG_LIMIT)];
    return (await this.#view.run('record_progress', queue, args)).reply === 1;
  }

  async join(queue: string, worker: string, session: NewSession): Promise<void> {
    await this.#registry.add(queue);
    await this.#view.run('join', queue, [
      this.#view.time(),
      worker,
      String(session.lease),
      session.info,
      session.raw ? '1' : '0',
    ]);
  }

  heartbeat(sessions: readonly WorkerSession[]): Promise<boolean[]> {
    return heartbeat(this.#view, sessions);
  }

  async leave(queue: string, worker: string, onlyIfExpired = false): Promise<void> {
    if ((await this.leasesOf(queue, worker)).length > 0) return;
    await this.#view.run('leave', queue, [this.#view.time(), worker, onlyIfExpired ? '1' : '0']);
  }

  async leasesOf(queue: string, worker: string): Promise<Lease[]> {
    return (await leasesOf(this.#view, queue, (name) => name === worker)).map((found) => found.lease);
  }

  async sweep(queue: string, options: SweepOptions): Promise<SweepResult> {
    const { ms, count: most } = DEFAULT_SPEC.keep.done;
    const args = [this.#view.time(), ...[options.lease, options.every, ms, most].map(String)];
    const reply = (await this.#view.run('sweep', queue, args)).reply as Reply[] | number;
    if (typeof reply === 'number') return { lost: [], more: false, quietFor: reply };
    const [quietFor, more, outbox, edges, unused, kept, droppedDead, count] = reply as number[];
    if (unused === 1) await this.#registry.remove(queue);
    if (outbox! >= 2) await this.#moves.resume(queue);
    const left = outbox! % 2 === 1 && !(await this.#dependencies.drain(queue));
    if (edges === 1) await this.#dependencies.recheck(queue);
    if (kept === 1) await this.#dependencies.recheckKept(queue);
    const workers = reply.slice(8, 8 + count!).map((id) => text(id));
    const late = reply.slice(8 + count!).map((id) => text(id));
    const lost = [
      ...(workers.length > 0 ? await lostWithWorkers(this.#view, queue, new Set(workers)) : []),
      ...(await lostWithReservations(this.#view, queue, late)),
    ];
    return {
      lost,
      more: more === 1 || left || lost.length > 0,
      quietFor: quietFor!,
      ...(droppedDead! > 0 ? { droppedDead: droppedDead! } : {}),
    };
  }

  sweepQuiet(queues: readonly QuietQueue[]): Promise<boolean[]> {
    return sweepQuiet(this.#view, queues);
  }

  withReady(queues: readonly string[], ask: () => void): Promise<string[]> {
    return withReady(this.#view, queues, this.#keyWatch, ask);
  }

  get(queue: string, ids: readonly string[]): Promise<(Job | undefined)[]> {
    return get(this.#view, queue, ids);
  }

  list(queue: string, options: ListOptions): Promise<JobPage> {
    return list(this.#view, queue, options);
  }

  dependents(queue: string, id: string, limit: number): Promise<Dependents> {
    return dependents(this.#view, queue, id, limit);
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

  cancel(queue: string, ids: readonly string[], by?: string): Promise<boolean[]> {
    return this.#end('cancel', 'cancelled', queue, ids, by);
  }

  async remove(queue: string, ids: readonly string[]): Promise<boolean[]> {
    const { reply, repeated } = await this.#view.run('remove', queue, [this.#view.time(), ...ids]);
    return (reply as number[]).map((flag) => repeated || flag === 1);
  }

  async rerun(queue: string, ids: readonly string[], from: readonly Terminal[], by?: string): Promise<boolean[]> {
    const line = by === undefined ? '' : writeAction('retried', this.now(), by);
    const { reply, repeated } = await this.#view.run('rerun', queue, [this.#view.time(), line, from.join(), ...ids]);
    return (reply as number[]).map((flag) => repeated || flag === 1);
  }

  async update(queue: string, id: string, changes: JobChanges): Promise<State | undefined> {
    const line = changeLine(changes, this.now()) ?? '';
    const { reply } = await this.#view.run('update', queue, updateArguments(id, changes, this.#view.time(), line));
    return reply === null || text(reply) === '' ? undefined : (text(reply) as State);
  }

  move(queue: string, ids: readonly string[], to: string, by?: string): Promise<MoveOutcome[]> {
    return this.#moves.move(queue, ids, to, by);
  }

  settings(queue: string): Promise<QueueSettings> {
    return settings(this.#view, queue);
  }

  async configure(queue: string, changes: Partial<QueueSettings>): Promise<void> {
    await this.#registry.add(queue);
    await configure(this.#view, queue, changes);
  }

  async obliterate(queue: string): Promise<void> {
    while ((await this.#view.run('obliterate', queue, [this.#view.time()])).reply !== 1);
    await this.#registry.remove(queue);
  }

  async watchForEnd(queue: string, ids: readonly string[]): Promise<void> {
    await this.#view.run('watch_for_end', queue, [this.#view.time(), ...ids]);
  }

  subscribe(queue: string, listener: (signal: Signal) => void): () => void {
    return this.#signals.listen(queue, this.#view.keys.queue(queue).channel, listener);
  }

  async close(): Promise<void> {
    this.#signals.close();
    this.#keyWatch.close();
    this.#view.client.redis.off('ready', this.#registry.forgetAll);
    await this.#view.client.close();
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
    by?: string,
  ): Promise<boolean[]> {
    const known = (await this.get(queue, ids)).filter((job) => job !== undefined);
    if (known.length === 0) return ids.map(() => false);
    const line = by === undefined ? '' : writeAction('cancelled', this.now(), by);
    const args: Arg[] = name === 'cancel' ? [this.#view.time(), line] : [this.#view.time()];
    for (const { id, spec } of known) {
      const keep = keepOf(spec, state);
      args.push(id, String(keep.ms), String(keep.count), freedKey({ spec }) ?? '', String(spec.idWindow ?? 0));
    }
    const { reply, repeated } = await this.#view.run(name, queue, args);
    const applied = this.#applied(queue, reply as number[], repeated);
    const ended = new Set(known.filter((_job, i) => applied[i]).map((job) => job.id));
    this.#dependencies.release(
      queue,
      known.filter((_job, i) => applied[i]),
    );
    return ids.map((id) => ended.delete(id));
  }

  /** Jobs that wait for their children are settled one by one, as these may be in other slots; the others together. */
  async #settleWithParks(queue: string, settlements: readonly Settlement[]): Promise<boolean[]> {
    const others = settlements.filter(({ outcome }) => outcome.to !== 'blocked');
    const rest = await this.settle(queue, others);
    const applied = new Map(others.map((settlement, i) => [settlement, rest[i]!]));
    for (const settlement of settlements) {
      if (settlement.outcome.to === 'blocked') applied.set(settlement, await this.#park(queue, settlement));
    }
    return settlements.map((settlement) => applied.get(settlement)!);
  }

  async #park(queue: string, settlement: Settlement): Promise<boolean> {
    const { outcome, lease } = settlement;
    const children = outcome.to === 'blocked' ? outcome.list.children : [];
    const edges = await this.#dependencies.linkChildren(queue, lease.id!, children);
    const { reply, repeated } = await this.#view.run(
      'park',
      queue,
      parkArguments(queue, settlement, this.#view.time()),
    );
    const [parked] = this.#applied(queue, reply as number[], repeated);
    await this.#dependencies.settle(edges);
    return parked!;
  }

  /** Jobs that have ended no longer need the records of their upstream jobs in other queues. */
  #released(queue: string, settlements: readonly Settlement[], applied: boolean[]): boolean[] {
    const ended: { id: string; spec: Spec }[] = [];
    for (const [i, { lease, outcome, spec }] of settlements.entries()) {
      if (spec.needs && applied[i] && isTerminal(outcome.to)) ended.push({ id: lease.id!, spec });
    }
    if (ended.length > 0) this.#dependencies.release(queue, ended);
    return applied;
  }

  /** Runs the fast path of settle for jobs, whose reply lists only refused entries. */
  async #done(queue: string, args: Arg[], count: number): Promise<SettleReply> {
    const { reply, repeated } = await this.#view.run('done', queue, args);
    const [outbox, ...stale] = reply as number[];
    const applied = new Array<boolean>(count).fill(true);
    for (const index of stale) applied[index - 1] = false;
    this.#deliver(queue, outbox!);
    return { applied, repeated };
  }

  /** The same for raw tasks. */
  async #doneTasks(queue: string, settlements: readonly Settlement[]): Promise<boolean[]> {
    const { items, order } = byBatch(settlements.map(({ lease }) => lease));
    const { reply, repeated } = await this.#view.run('done_tasks', queue, [this.#view.time(), pack(items)]);
    const applied = new Array<boolean>(settlements.length).fill(false);
    for (const i of order) applied[i] = true;
    if (!repeated) for (const stale of reply as number[]) applied[order[stale - 1]!] = false;
    return applied;
  }

  /** Reads the flags of a reply; an entry that a lost first try may have settled counts as settled. */
  #applied(queue: string, flags: number[], repeated: boolean): boolean[] {
    this.#deliver(queue, flags[0]!);
    return flags.slice(1).map((flag) => repeated || flag === 1);
  }

  /** Notifies dependents in other slots as soon as possible; if this fails, a sweep does it. */
  #deliver(queue: string, outbox: number): void {
    if (outbox === 1) this.#dependencies.drain(queue).catch(() => {});
  }
}
