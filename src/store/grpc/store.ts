import type { CallOptions, Client } from '@connectrpc/connect';
import { CroreError } from '../../errors.js';
import type { Bytes, Job, Lease, NewJob, State, Terminal } from '../../job/job.js';
import { type AddResult, ClaimStatus, type Crore, AddOutcome as Outcome } from '../../proto/crore/v1/crore_pb.js';
import { settledInAll } from '../repeated-settle.js';
import {
  type AddOutcome,
  type BatchStore,
  type Capacity,
  type Claim,
  type Counts,
  CREATED,
  type Dependents,
  type EventPage,
  type EventStore,
  FULL,
  type JobChanges,
  type JobPage,
  type ListOptions,
  type LostEntry,
  type MoveOutcome,
  type NewSchedule,
  type NewSession,
  type ProgressUpdate,
  type QueueLimits,
  type QueueSettings,
  type Schedule,
  type ScheduleStore,
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
import {
  fromBody,
  fromLease,
  fromNewJob,
  fromSettlement,
  fromState,
  fromTimes,
  toCounts,
  toEntry,
  toJob,
  toLease,
  toState,
} from './codec.js';
import { translate } from './failure.js';
import { MOVE_OUTCOMES } from './move-outcomes.js';
import {
  fromBreaker,
  fromLimits,
  fromSchedule,
  toBreakerPart,
  toEvents,
  toLimits,
  toSchedule,
} from './schedule-codec.js';
import { Signals } from './signals.js';
import { toRef } from './spec-codec.js';
import { fromMs, fromTime, toTime } from './times.js';

export interface GrpcStoreOptions {
  client: Client<typeof Crore>;
  url: string;
  shown: string;
  /** The server's clock minus ours. */
  skew: number;
  warnings: readonly string[];
  timeout: number;
  clock?: () => number;
  /** Closes the connection. */
  hangUp: () => void;
}

/** The outcomes that name an existing job. */
const OUTCOMES: Record<number, 'duplicate' | 'replaced' | 'extended'> = {
  [Outcome.DUPLICATE]: 'duplicate',
  [Outcome.REPLACED]: 'replaced',
  [Outcome.EXTENDED]: 'extended',
};
const PAUSE = 50;
const LONGEST_PAUSE = 1_000;
const STATUSES: Record<number, Claim['status']> = {
  [ClaimStatus.OK]: 'ok',
  [ClaimStatus.PAUSED]: 'paused',
  [ClaimStatus.LOST]: 'lost',
};

export class GrpcStore implements Store {
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
  readonly batches: BatchStore = {
    close: async (queue, id) => {
      const { value } = await this.#call((options) => this.#client.closeBatch({ queue, id }, options));
      return value.state === 0 ? undefined : toState(value.state);
    },
    openMembers: async (queue, id, { limit, cursor }) => {
      const request = { queue, id, limit, cursor };
      const { value } = await this.#call((options) => this.#client.listBatchMembers(request, options));
      const members = value.members.map((member) => toRef(member, queue));
      return { members, ...(value.cursor === '' ? {} : { cursor: value.cursor }) };
    },
  };
  readonly maxParallelClaims = 3;
  readonly warnings: readonly string[];
  readonly threadUrl: string;
  readonly #client: Client<typeof Crore>;
  readonly #options: GrpcStoreOptions;
  readonly #signals: Signals;
  #closed = false;

  constructor(options: GrpcStoreOptions) {
    this.#options = options;
    this.#client = options.client;
    this.warnings = options.warnings;
    this.threadUrl = options.url;
    this.#signals = new Signals(options.client);
  }

  now(): number {
    const { clock, skew } = this.#options;
    return clock ? clock() : Date.now() + skew;
  }

  async push(queue: string, tasks: readonly Bytes[], limits: Capacity = {}): Promise<boolean> {
    const request = { queue, tasks: [...tasks], limits: wireLimits(limits) };
    const { value } = await this.#call((options) => this.#client.push(request, options), false);
    return Number(value.accepted) === tasks.length;
  }

  async add(queue: string, jobs: readonly NewJob[], limits: Capacity = {}): Promise<AddOutcome[]> {
    const request = { queue, jobs: jobs.map(fromNewJob), limits: wireLimits(limits) };
    const { value, repeated } = await this.#call((options) => this.#client.add(request, options));
    return toOutcomes(value.results, jobs, repeated);
  }

  async #addFromSource(queue: string, jobs: readonly NewJob[], mark: SourceStep): Promise<AddOutcome[] | 'stale'> {
    const request = { queue, jobs: jobs.map(fromNewJob), ...mark };
    const { value, repeated } = await this.#call((options) => this.#client.addFromSource(request, options));
    if (!value.stale) return toOutcomes(value.results, jobs, repeated);
    // A first try whose reply was lost has already moved the source to the target position.
    const done = repeated && (await this.#sourcePosition(queue, mark.source)) === mark.to;
    return done ? jobs.map(() => CREATED) : 'stale';
  }

  async #sourcePosition(queue: string, source: string): Promise<string> {
    return (await this.#call((options) => this.#client.sourcePosition({ queue, source }, options))).value.position;
  }

  async #isPaused(queue: string): Promise<boolean> {
    return (await this.#call((options) => this.#client.isPaused({ queue }, options))).value.paused;
  }

  async claim(session: WorkerSession, n: number): Promise<Claim> {
    const request = { session: wireSession(session), n };
    const { value } = await this.#call((options) => this.#client.claim(request, options), false);
    const { status, entries, more, nextAt } = value;
    return { status: STATUSES[status] ?? 'ok', entries: entries.map(toEntry), more, nextAt: toTime(nextAt) };
  }

  async settle(queue: string, settlements: readonly Settlement[]): Promise<boolean[]> {
    if (settlements.length === 0) return [];
    const request = { queue, settlements: settlements.map(fromSettlement) };
    const { value, repeated } = await this.#call((options) => this.#client.settle(request, options));
    return settledInAll(this, queue, settlements, { applied: value.applied, repeated });
  }

  async recordProgress(queue: string, lease: Lease, { progress, log }: ProgressUpdate): Promise<boolean> {
    const request = { queue, lease: fromLease(lease), progress, log };
    return (await this.#call((options) => this.#client.recordProgress(request, options))).value.applied;
  }

  async join(queue: string, worker: string, { lease, info }: NewSession): Promise<void> {
    await this.#call((options) => this.#client.join({ queue, worker, lease: fromMs(lease), info }, options));
  }

  async heartbeat(sessions: readonly WorkerSession[]): Promise<boolean[]> {
    const request = { sessions: sessions.map(wireSession) };
    return (await this.#call((options) => this.#client.heartbeat(request, options))).value.alive;
  }

  async leave(queue: string, worker: string, onlyIfExpired = false): Promise<void> {
    await this.#call((options) => this.#client.leave({ queue, worker, onlyIfExpired }, options));
  }

  async leasesOf(queue: string, worker: string): Promise<Lease[]> {
    const { value } = await this.#call((options) => this.#client.leases({ queue, worker }, options));
    return value.leases.map((lease) => toLease(lease));
  }

  async sweep(queue: string, { lease, every }: SweepOptions): Promise<SweepResult> {
    const request = { queue, lease: fromMs(lease), every: fromMs(every) };
    const { value } = await this.#call((options) => this.#client.sweep(request, options));
    const lost = value.lost.map(
      ({ entry, reservation }): LostEntry => ({ ...toEntry(entry!), why: reservation ? 'reservation' : 'worker' }),
    );
    const droppedDead = Number(value.droppedDead);
    return { lost, more: value.more, ...(droppedDead > 0 ? { droppedDead } : {}) };
  }

  async get(queue: string, ids: readonly string[]): Promise<(Job | undefined)[]> {
    const jobs: (Job | undefined)[] = [];
    while (jobs.length < ids.length) {
      const rest = ids.slice(jobs.length);
      const { value } = await this.#call((options) => this.#client.get({ queue, ids: rest }, options));
      if (value.found.length === 0)
        throw new CroreError('STORE_UNREACHABLE', 'the server did not return the requested jobs');
      jobs.push(...value.found.map(({ job }) => job && toJob(job)));
    }
    return jobs;
  }

  async list(queue: string, { state, limit, cursor }: ListOptions): Promise<JobPage> {
    const request = { queue, state: fromState(state), limit, cursor };
    const { value } = await this.#call((options) => this.#client.list(request, options));
    return { jobs: value.jobs.map(toJob), cursor: value.cursor === '' ? undefined : value.cursor };
  }

  async count(queue: string): Promise<Counts> {
    return toCounts((await this.#call((options) => this.#client.count({ queue }, options))).value.counts);
  }

  async queues(): Promise<string[]> {
    return (await this.#call((options) => this.#client.queues({}, options))).value.queues;
  }

  async workers(queue: string): Promise<WorkerInfo[]> {
    const { value } = await this.#call((options) => this.#client.workers({ queue }, options));
    return value.workers.map(({ id, deadline, holds, info }) => ({
      id,
      deadline: toTime(deadline) ?? 0,
      holds: Number(holds),
      info,
    }));
  }

  async dependents(queue: string, id: string, limit: number): Promise<Dependents> {
    const { value } = await this.#call((options) => this.#client.dependents({ queue, id, limit }, options));
    return { jobs: value.jobs.map((job) => ({ queue: job.queue, id: job.id })), total: Number(value.total) };
  }

  reportSuccess(queue: string, ids: readonly string[]): Promise<boolean[]> {
    return this.#applied((options) => this.#client.reportSuccess({ queue, ids: [...ids] }, options));
  }

  remove(queue: string, ids: readonly string[]): Promise<boolean[]> {
    return this.#applied((options) => this.#client.remove({ queue, ids: [...ids] }, options));
  }

  rerun(queue: string, ids: readonly string[], from: readonly Terminal[], by?: string): Promise<boolean[]> {
    const request = { queue, ids: [...ids], from: from.map(fromState), by };
    return this.#applied((options) => this.#client.rerun(request, options));
  }

  async update(queue: string, id: string, changes: JobChanges): Promise<State | undefined> {
    const { payload, priority, at, delay, by } = changes;
    const time = fromTimes(delay, at);
    const request = { queue, id, payload: fromBody(payload), priority, time, by };
    const { value } = await this.#call((options) => this.#client.update(request, options));
    return value.found === 0 ? undefined : toState(value.found);
  }

  cancel(queue: string, ids: readonly string[], by?: string): Promise<boolean[]> {
    return this.#applied(async (options) => ({
      applied: (await this.#client.cancel({ queue, ids: [...ids], by }, options)).cancelled,
    }));
  }

  async #pause(queue: string, paused: boolean): Promise<void> {
    if (paused) await this.#call((options) => this.#client.pause({ queue }, options));
    else await this.#call((options) => this.#client.resume({ queue }, options));
  }

  async #setLimits(queue: string, limits: QueueLimits): Promise<void> {
    await this.#call((options) => this.#client.setLimits({ queue, limits: fromLimits(limits) }, options));
  }

  async #limits(queue: string): Promise<QueueLimits> {
    return toLimits((await this.#call((options) => this.#client.getLimits({ queue }, options))).value.limits);
  }

  async #putSchedule(schedule: NewSchedule): Promise<Schedule> {
    const request = { schedule: fromSchedule(schedule) };
    return toSchedule((await this.#call((options) => this.#client.putSchedule(request, options))).value.schedule);
  }

  async #fireSchedule(schedule: Schedule, firing: Parameters<ScheduleStore['fire']>[1]): Promise<boolean> {
    const { jobs, next, last } = firing;
    const request = {
      schedule: fromSchedule(schedule),
      jobs: jobs.map(fromNewJob),
      next: fromTime(next),
      last: fromTime(last),
    };
    const { value, repeated } = await this.#call((options) => this.#client.fireSchedule(request, options));
    return value.applied || repeated;
  }

  async #listSchedules(): Promise<Schedule[]> {
    const { value } = await this.#call((options) => this.#client.listSchedules({}, options));
    return value.schedules.map(({ record }) => toSchedule(record));
  }

  async #removeSchedule(name: string): Promise<boolean> {
    const { value, repeated } = await this.#call((options) => this.#client.unschedule({ name }, options));
    return value.removed || repeated;
  }

  async #recordEvents(queue: string, ms: number): Promise<string> {
    return (await this.#call((options) => this.#client.recordEvents({ queue, time: fromMs(ms) }, options))).value
      .position;
  }

  async #readEvents(queue: string, after: string, limit: number): Promise<EventPage> {
    return toEvents((await this.#call((options) => this.#client.readEvents({ queue, after, limit }, options))).value);
  }

  async move(queue: string, ids: readonly string[], to: string, by?: string): Promise<MoveOutcome[]> {
    const request = { queue, ids: [...ids], to, by };
    const { value, repeated } = await this.#call((options) => this.#client.move(request, options));
    // After a lost reply, a job that is gone or already there was moved by the first try.
    const tried = (outcome: MoveOutcome) => (repeated && outcome === 'unknown' ? 'moved' : outcome);
    return value.outcomes.map((outcome) => tried(MOVE_OUTCOMES[outcome - 1] ?? 'unknown'));
  }

  async settings(queue: string): Promise<QueueSettings> {
    const [paused, limits, breaker] = await Promise.all([
      this.#isPaused(queue),
      this.#limits(queue),
      this.#call((options) => this.#client.getBreaker({ queue }, options)),
    ]);
    return { paused, limits, ...toBreakerPart(breaker.value) };
  }

  async configure(queue: string, { paused, limits, breaker }: Partial<QueueSettings>): Promise<void> {
    if (paused !== undefined) await this.#pause(queue, paused);
    if (limits !== undefined) await this.#setLimits(queue, limits);
    if (breaker === undefined) return;
    const request = { queue, breaker: breaker ? fromBreaker({ breaker }).breaker : undefined };
    await this.#call((options) => this.#client.setBreaker(request, options));
  }

  async obliterate(queue: string): Promise<void> {
    await this.#call((options) => this.#client.obliterate({ queue }, options));
  }

  async watchForEnd(queue: string, ids: readonly string[]): Promise<void> {
    await this.#call((options) => this.#client.watchForEnd({ queue, ids: [...ids] }, options));
  }

  subscribe(queue: string, listener: (signal: Signal) => void): () => void {
    return this.#signals.listen(queue, listener);
  }

  async close(): Promise<void> {
    this.#signals.close();
    this.#closed = true;
    this.#options.hangUp();
  }

  /** Returns which entries were applied; an entry that a lost first try may have applied counts as applied. */
  async #applied(work: (options: CallOptions) => Promise<{ applied: boolean[] }>): Promise<boolean[]> {
    const { value, repeated } = await this.#call(work);
    return repeated ? value.applied.map(() => true) : value.applied;
  }

  /** Makes one call, retried while the server is unavailable and time is left, if a repetition is harmless. */
  async #call<T>(work: (options: CallOptions) => Promise<T>, again = true): Promise<{ value: T; repeated: boolean }> {
    const { timeout, shown } = this.#options;
    const deadline = performance.now() + timeout;
    let repeated = false;
    for (let pause = PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      if (this.#closed) throw new CroreError('CLOSED', 'the connection has been closed');
      try {
        const timeoutMs = Math.max(1, Math.ceil(deadline - performance.now()));
        return { value: await work({ timeoutMs }), repeated };
      } catch (error) {
        if (this.#closed) throw new CroreError('CLOSED', 'the connection was closed during the call', { cause: error });
        const failure = translate(error, shown);
        if (!failure.again) throw failure.error;
        if (!again && failure.lost) throw new CroreError('STORE_UNCERTAIN', failure.error.message, { cause: error });
        if (performance.now() + pause > deadline) throw failure.error;
        repeated ||= failure.lost;
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }
}

function toOutcomes(results: readonly AddResult[], jobs: readonly NewJob[], repeated: boolean): AddOutcome[] {
  return results.map(({ outcome, id }, i) => {
    if (outcome === Outcome.FULL) return FULL;
    // Finding our own id after a lost reply means that our first try added the job.
    const own = repeated && id === jobs[i]!.id;
    const known = OUTCOMES[outcome];
    return known === undefined || (known === 'duplicate' && own) ? CREATED : { outcome: known, id };
  });
}

function wireLimits({ count, bytes }: Capacity) {
  const whole = (value: number | undefined) => (value === undefined ? undefined : BigInt(value));
  return { count: whole(count), bytes: whole(bytes) };
}

function wireSession({ queue, worker, lease }: WorkerSession) {
  return { queue, worker, lease: fromMs(lease) };
}
