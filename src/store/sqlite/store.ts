import { randomBytes } from 'node:crypto';
import type { Bytes, Job, Lease, NewJob } from '../../job/job.js';
import type {
  AddOutcome,
  Capacity,
  Claim,
  Counts,
  EventPage,
  EventStore,
  JobPage,
  ListOptions,
  NewSchedule,
  NewSession,
  ProgressUpdate,
  QueueLimits,
  QueueSettings,
  Schedule,
  ScheduleStore,
  Settlement,
  Signal,
  SourceStep,
  SourceStore,
  Store,
  SweepOptions,
  SweepResult,
  WorkerInfo,
  WorkerSession,
} from '../store.js';
import { ExternalConnections } from './external-connections.js';
import type { CommitWatcher } from './file/commit-watcher.js';
import type { Committer } from './file/committer.js';
import { translate } from './file/failure.js';
import { forgetUnused } from './forget-queue.js';
import { limitsOf } from './groups.js';
import { QueueCounters, type Tables } from './tables.js';
import { SqliteRawStore } from './tasks/raw-store.js';
import { writeWorkEvent } from './tasks/task-events.js';
import { add, push } from './verbs/add.js';
import { addFromSource, sourcePosition } from './verbs/add-from-source.js';
import { cancel, obliterate, recordProgress, remove, retryDead, setLimits } from './verbs/change.js';
import { claim } from './verbs/claim.js';
import { readEvents, recordEvents } from './verbs/events.js';
import { count, get, leasesOf, list, workers } from './verbs/reads.js';
import { reportSuccess } from './verbs/report.js';
import { fireSchedule, listSchedules, putSchedule, removeSchedule } from './verbs/schedules.js';
import { StaleLeaseInBatch, settle } from './verbs/settle.js';
import { type Swept, sweep } from './verbs/sweep.js';

type Listener = (signal: Signal) => void;

/** Minimum interval between notifications of external commits that may affect running work, in milliseconds. */
const RESET_PAUSE = 50;

const NOTHING_SWEPT: Swept = { lost: [], more: false, promoted: false };

export interface SqliteStoreOptions {
  tables: Tables;
  committer: Committer;
  /** Throws if the file is no longer at its path. */
  check: () => void;
  shown: string;
  clock: () => number;
  /** Creates the watcher for commits of other processes; absent for an in-memory database. */
  watcher?: (tell: () => void) => CommitWatcher;
  threadUrl?: string;
  /** The file, to compare with the connections of applications; absent for an in-memory database. */
  path?: string;
}

export class SqliteStore implements Store {
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
  readonly maxParallelClaims = 1;
  readonly warnings: readonly string[] = [];
  readonly threadUrl?: string;
  readonly raw: SqliteRawStore;
  readonly #tables: Tables;
  readonly #committer: Committer;
  readonly #check: () => void;
  readonly #shown: string;
  readonly #clock: () => number;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #watcher: CommitWatcher | undefined;
  readonly #enlistments: ExternalConnections;
  #resetAt = 0;
  #resetTimer: NodeJS.Timeout | undefined;

  constructor(options: SqliteStoreOptions) {
    this.#tables = options.tables;
    this.#committer = options.committer;
    this.#check = options.check;
    this.#shown = options.shown;
    this.#clock = options.clock;
    this.threadUrl = options.threadUrl;
    this.#enlistments = new ExternalConnections(options.tables.db, options.path, options.shown);
    this.#watcher = options.watcher?.(() => this.#foreignCommit());
    this.#committer.onCommit = () => this.#tellEvents();
    this.raw = new SqliteRawStore({
      tables: this.#tables,
      now: () => this.now(),
      write: (queue, work) => this.#write(queue, work),
      read: (queue, nothing, work) => this.#read(queue, nothing, work),
      work: (queue) => this.#emit(queue, { type: 'work' }),
      watch: (queue) => this.subscribe(queue, () => {}),
    });
  }

  now(): number {
    return this.#clock();
  }

  async push(queue: string, tasks: readonly Bytes[], limits: Capacity = {}): Promise<boolean> {
    const accepted = await this.#write(queue, (n) => {
      const fits = push(this.#tables, n, tasks, limits);
      if (fits) writeWorkEvent(this.#tables, n, this.now(), tasks.length);
      return fits;
    });
    if (accepted) this.#emit(queue, { type: 'work' });
    this.raw.pump();
    return accepted;
  }

  async add(queue: string, jobs: readonly NewJob[], limits: Capacity = {}): Promise<AddOutcome[]> {
    const outcomes = await this.#write(queue, (n) => add(this.#tables, n, jobs, limits, this.now()));
    this.#emit(queue, { type: 'work' });
    return outcomes;
  }

  /** Its commit counts as an external one, even within this process. */
  addIn(connection: unknown, queue: string, jobs: readonly NewJob[], limits: Capacity = {}): AddOutcome[] {
    return this.#enlistments.add(connection, queue, jobs, limits, this.now());
  }

  async #addFromSource(queue: string, jobs: readonly NewJob[], mark: SourceStep): Promise<AddOutcome[] | 'stale'> {
    const outcomes = await this.#write(queue, (n) => addFromSource(this.#tables, n, jobs, mark, this.now()));
    if (outcomes !== 'stale') this.#emit(queue, { type: 'work' });
    return outcomes;
  }

  #sourcePosition(queue: string, source: string): Promise<string> {
    return this.#read(queue, '', (n) => sourcePosition(this.#tables, n, source));
  }

  claim({ queue: name, worker, lease }: WorkerSession, n: number): Promise<Claim> {
    const nonce = randomBytes(9).toString('base64url');
    const nothing: Claim = { status: 'lost', entries: [], more: false };
    return this.#update(name, nothing, (queue) =>
      claim(this.#tables, { queue, name, worker, lease, n, nonce, now: this.now() }),
    );
  }

  async settle(queue: string, settlements: readonly Settlement[]): Promise<boolean[]> {
    const attempt = (careful: boolean) =>
      this.#update(queue, { applied: settlements.map(() => false), woken: [], ended: [] }, (n) =>
        settle(this.#tables, n, settlements, this.now(), careful),
      );
    const { applied, woken, ended } = await attempt(false).catch((error) => {
      if (error instanceof StaleLeaseInBatch) return attempt(true);
      throw error;
    });
    this.#tellEnds(queue, ended, woken);
    this.raw.pump();
    return applied;
  }

  recordProgress(queue: string, lease: Lease, value: ProgressUpdate): Promise<boolean> {
    return this.#update(queue, false, (n) => recordProgress(this.#tables, n, lease, value, this.now()));
  }

  join(queue: string, worker: string, session: NewSession): Promise<void> {
    return this.#write(queue, (n) => {
      this.#tables
        .sql('INSERT OR REPLACE INTO sessions (queue, worker, deadline, info, raw) VALUES (?, ?, ?, ?, ?)')
        .run(n, worker, this.now() + session.lease, session.info, session.raw ? 1 : 0);
      // From here on a gap between sweeps can be recognised.
      this.#tables.sql('UPDATE queues SET swept = ? WHERE n = ? AND swept IS NULL').run(this.now(), n);
    });
  }

  heartbeat(sessions: readonly WorkerSession[]): Promise<boolean[]> {
    return this.#committer.run(() => {
      const update = this.#tables.sql(
        'UPDATE sessions SET deadline = ? WHERE queue = ? AND worker = ? AND deadline >= 0',
      );
      return sessions.map(({ queue, worker, lease }) => {
        const number = this.#tables.find(queue);
        return number !== undefined && update.run(this.now() + lease, number, worker).changes === 1;
      });
    });
  }

  leave(queue: string, worker: string): Promise<void> {
    return this.#update(queue, undefined, (n) => {
      if (leasesOf(this.#tables, n, worker).length > 0) return;
      this.#tables.sql('DELETE FROM sessions WHERE queue = ? AND worker = ?').run(n, worker);
    });
  }

  leasesOf(queue: string, worker: string): Promise<Lease[]> {
    return this.#read(queue, [], (n) => leasesOf(this.#tables, n, worker));
  }

  async sweep(queue: string, options: SweepOptions): Promise<SweepResult> {
    const { lost, more, promoted } = await this.#update(queue, NOTHING_SWEPT, (n) =>
      sweep(this.#tables, n, queue, this.now(), options),
    );
    if (promoted) this.#emit(queue, { type: 'work' });
    return { lost, more };
  }

  get(queue: string, ids: readonly string[]): Promise<(Job | undefined)[]> {
    const nothing = ids.map(() => undefined);
    return this.#read(queue, nothing, (n) => get(this.#tables, n, queue, ids));
  }

  list(queue: string, options: ListOptions): Promise<JobPage> {
    return this.#read(queue, { jobs: [] }, (n) => list(this.#tables, n, queue, options));
  }

  count(queue: string): Promise<Counts> {
    return this.#attempt(() => count(this.#tables, this.#tables.find(queue)));
  }

  queues(): Promise<string[]> {
    return this.#attempt(() =>
      this.#tables
        .sql("SELECT name FROM queues WHERE name <> '' ORDER BY name")
        .all()
        .map((row) => row.name as string),
    );
  }

  workers(queue: string): Promise<WorkerInfo[]> {
    return this.#read(queue, [], (n) => workers(this.#tables, n));
  }

  async reportSuccess(queue: string, ids: readonly string[]): Promise<boolean[]> {
    const { applied, ended, woken } = await this.#update(queue, nothing(ids), (n) =>
      reportSuccess(this.#tables, n, ids, this.now()),
    );
    this.#tellEnds(queue, ended, woken);
    return applied;
  }

  async cancel(queue: string, ids: readonly string[]): Promise<boolean[]> {
    const { applied, tokens, ended, woken } = await this.#update(queue, { ...nothing(ids), tokens: [] }, (n) =>
      cancel(this.#tables, n, ids, this.now()),
    );
    for (const token of tokens) this.#emit(queue, { type: 'cancelled', token });
    this.#tellEnds(queue, ended, woken);
    return applied;
  }

  async retryDead(queue: string, ids: readonly string[]): Promise<boolean[]> {
    const applied = await this.#update(queue, nothing(ids).applied, (n) => retryDead(this.#tables, n, ids, this.now()));
    this.#emit(queue, { type: 'work' });
    return applied;
  }

  remove(queue: string, ids: readonly string[]): Promise<boolean[]> {
    return this.#update(queue, nothing(ids).applied, (n) => remove(this.#tables, n, ids));
  }

  async #pause(queue: string, paused: boolean): Promise<void> {
    await this.#write(queue, (n) => {
      this.#tables.sql('UPDATE queues SET paused = ? WHERE n = ?').run(paused ? 1 : 0, n);
    });
    if (!paused) this.#emit(queue, { type: 'work' });
  }

  async #setLimits(queue: string, limits: QueueLimits): Promise<void> {
    await this.#write(queue, (n) => setLimits(this.#tables, n, limits, this.now()));
    this.#emit(queue, { type: 'work' });
  }

  settings(queue: string): Promise<QueueSettings> {
    return this.#read(queue, { paused: false, limits: {} }, (n) => {
      const row = this.#tables.row(n);
      return { paused: row.paused === 1, limits: limitsOf(row) };
    });
  }

  async configure(queue: string, { paused, limits }: Partial<QueueSettings>): Promise<void> {
    if (paused !== undefined) await this.#pause(queue, paused);
    if (limits !== undefined) await this.#setLimits(queue, limits);
  }

  async obliterate(queue: string): Promise<void> {
    const woken = await this.#update<number[]>(queue, [], (n) => {
      const told = obliterate(this.#tables, n, this.now());
      forgetUnused(this.#tables, n, this.now());
      return told;
    });
    this.#emit(queue, { type: 'reset' });
    this.#tellEnds(queue, [], woken);
  }

  #putSchedule(schedule: NewSchedule): Promise<Schedule> {
    return this.#write(schedule.queue, (n) => putSchedule(this.#tables, n, schedule));
  }

  async #fireSchedule(
    schedule: Schedule,
    firing: { jobs: readonly NewJob[]; next?: number; last?: number },
  ): Promise<boolean> {
    const fired = await this.#write(schedule.queue, (n) => fireSchedule(this.#tables, n, schedule, firing, this.now()));
    if (fired) this.#emit(schedule.queue, { type: 'work' });
    return fired;
  }

  #listSchedules(): Promise<Schedule[]> {
    return this.#attempt(() => listSchedules(this.#tables));
  }

  #removeSchedule(name: string): Promise<boolean> {
    return this.#committer.run(() => removeSchedule(this.#tables, name));
  }

  /** In this process every end is signalled anyway; ends in other processes appear as external commits. */
  async watchForEnd(queue: string, ids: readonly string[]): Promise<void> {
    const jobs = await this.get(queue, ids);
    jobs.forEach((job, i) => {
      if (!job || job.finishedAt !== undefined) this.#emit(queue, { type: 'finished', id: ids[i]! });
    });
  }

  #recordEvents(queue: string, ms: number): Promise<string> {
    return this.#write(queue, (n) => recordEvents(this.#tables, new QueueCounters(this.#tables, n), ms, this.now()));
  }

  #readEvents(queue: string, after: string, limit: number): Promise<EventPage> {
    return this.#read(queue, { events: [], gap: true }, (n) => readEvents(this.#tables, n, after, limit));
  }

  subscribe(queue: string, listener: Listener): () => void {
    const set = this.#listeners.get(queue) ?? new Set();
    this.#listeners.set(queue, set);
    set.add(listener);
    this.#watcher?.start();
    return () => {
      set.delete(listener);
      if (set.size === 0) this.#listeners.delete(queue);
      if (this.#listeners.size === 0) this.#watcher?.stop();
    };
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    this.#watcher?.stop();
    clearTimeout(this.#resetTimer);
    this.#committer.close();
    this.#tables.db.close();
  }

  /** Queue numbers are not cached: another process may have removed an empty queue. */
  #write<T>(queue: string, work: (queue: number) => T): Promise<T> {
    return this.#committer.run(() => work(this.#tables.ensure(queue)));
  }

  /** The same for calls that add nothing: does not create a missing queue. */
  #update<T>(queue: string, nothing: T, work: (queue: number) => T): Promise<T> {
    return this.#committer.run(() => {
      const number = this.#tables.find(queue);
      return number === undefined ? nothing : work(number);
    });
  }

  #read<T>(queue: string, nothing: T, work: (queue: number) => T): Promise<T> {
    return this.#attempt(() => {
      const number = this.#tables.find(queue);
      return number === undefined ? nothing : work(number);
    });
  }

  async #attempt<T>(work: () => T): Promise<T> {
    try {
      this.#check();
      return work();
    } catch (error) {
      throw translate(error, this.#shown);
    }
  }

  #tellEnds(queue: string, ended: readonly string[], woken: readonly number[]): void {
    if (this.#listeners.has(queue)) for (const id of ended) this.#emit(queue, { type: 'finished', id });
    for (const number of new Set(woken)) {
      const name = this.#tables.row(number)?.name;
      if (name !== undefined) this.#emit(name, { type: 'work' });
    }
  }

  #tellEvents(): void {
    const { eventful } = this.#tables;
    if (eventful.size === 0) return;
    for (const queue of eventful) this.#emit(queue, { type: 'events' });
    eventful.clear();
  }

  #emit(queue: string, signal: Signal): void {
    for (const listener of this.#listeners.get(queue) ?? []) listener(signal);
  }

  #emitAll(signal: Signal): void {
    for (const queue of this.#listeners.keys()) this.#emit(queue, signal);
  }

  /** Signals possible work at once, and possible cancellations or ends of watched jobs at a limited rate. */
  #foreignCommit(): void {
    this.raw.pump();
    this.#emitAll({ type: 'work' });
    if (this.#resetTimer) return;
    const wait = Math.max(0, this.#resetAt + RESET_PAUSE - performance.now());
    this.#resetTimer = setTimeout(() => {
      this.#resetTimer = undefined;
      this.#resetAt = performance.now();
      this.#emitAll({ type: 'reset' });
    }, wait).unref();
  }
}

/** The result of a change to jobs when there are none. */
function nothing(ids: readonly string[]): { applied: boolean[]; ended: string[]; woken: number[] } {
  return { applied: ids.map(() => false), ended: [], woken: [] };
}
