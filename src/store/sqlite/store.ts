import { newNonce } from '../../job/id.js';
import type { Bytes, Job, Lease, NewJob, State, Terminal } from '../../job/job.js';
import type {
  AddOutcome,
  BatchStore,
  Capacity,
  Claim,
  Counts,
  Dependents,
  EventStore,
  HistoryStore,
  JobChanges,
  JobPage,
  ListOptions,
  MoveOutcome,
  NewSession,
  ProgressUpdate,
  QueueSettings,
  QuietQueue,
  ScheduleStore,
  Settlement,
  Signal,
  SourceStore,
  Store,
  SweepOptions,
  SweepResult,
  WorkerInfo,
  WorkerSession,
} from '../store.js';
import { QueueAccess } from './access.js';
import { AwaitMarks } from './await-marks.js';
import { breakerSettings } from './breaker.js';
import { ExternalConnections } from './external-connections.js';
import { batchStore, eventStore, historyStore, scheduleStore, sourceStore } from './facets.js';
import { backUp } from './file/backup.js';
import type { CommitWatcher } from './file/commit-watcher.js';
import type { Committer } from './file/committer.js';
import { returnFreeSpace } from './file/free-space.js';
import { forgetUnused } from './forget-queue.js';
import { limitsOf } from './groups.js';
import { Signals } from './signals.js';
import type { Tables } from './tables.js';
import { SqliteRawStore } from './tasks/raw-store.js';
import { writeWorkEvent } from './tasks/task-events.js';
import { add, push } from './verbs/add.js';
import { cancel, configure, obliterate, recordProgress, remove, rerun } from './verbs/change.js';
import { claim } from './verbs/claim.js';
import { type Moved, moveJobs } from './verbs/move.js';
import { count, dependents, get, leasesOf, list, workers } from './verbs/reads.js';
import { reportSuccess } from './verbs/report.js';
import { heartbeat, join, leave } from './verbs/sessions.js';
import { StaleLeaseInBatch, settle } from './verbs/settle.js';
import { type Swept, sweep, sweepQuiet } from './verbs/sweep.js';
import { updateJob } from './verbs/update.js';

/** How much room a cleared queue may give back at once: a gigabyte, some seconds. */
const CLEARING_STEPS = 128;

const NOTHING_SWEPT: Swept = { lost: [], more: false, promoted: false };

export interface SqliteStoreOptions {
  tables: Tables;
  committer: Committer;
  /** Throws if the file is no longer at its path. */
  check: () => void;
  shown: string;
  clock: () => number;
  /** Creates the watcher for commits of other processes; absent for an in-memory database. */
  watcher?: (notify: () => void) => CommitWatcher;
  threadUrl?: string;
  warnings: readonly string[];
  /** The file, to compare with the connections of applications; absent for an in-memory database. */
  path?: string;
}

export class SqliteStore implements Store {
  readonly schedules: ScheduleStore;
  readonly events: EventStore;
  readonly sources: SourceStore;
  readonly batches: BatchStore;
  readonly history: HistoryStore;
  readonly raw: SqliteRawStore;
  readonly maxParallelClaims = 1;
  readonly warnings: readonly string[];
  readonly threadUrl?: string;
  readonly now: () => number;
  readonly #tables: Tables;
  readonly #shown: string;
  readonly #access: QueueAccess;
  readonly #signals: Signals;
  readonly #externalConnections: ExternalConnections;
  readonly #marks: AwaitMarks;

  constructor(options: SqliteStoreOptions) {
    const { tables, committer, check, shown, clock, watcher, path, threadUrl } = options;
    this.threadUrl = threadUrl;
    this.warnings = options.warnings;
    this.now = clock;
    this.#tables = tables;
    this.#shown = shown;
    this.#access = new QueueAccess(tables, committer, clock, check, shown);
    this.#signals = new Signals(tables, watcher, () => this.raw.pump());
    this.#marks = new AwaitMarks(this.#access);
    this.#externalConnections = new ExternalConnections(tables.db, path, shown);
    this.schedules = scheduleStore(this.#access, this.#signals);
    this.events = eventStore(this.#access);
    this.sources = sourceStore(this.#access, this.#signals);
    this.batches = batchStore(this.#access, this.#signals);
    this.history = historyStore(this.#access);
    this.raw = new SqliteRawStore(this.#access, this.#signals);
    committer.onCommit = () => this.#signals.newEvents(tables.queuesWithNewEvents);
  }

  async push(queue: string, tasks: readonly Bytes[], limits: Capacity = {}): Promise<boolean> {
    const accepted = await this.#access.write(queue, (n) => {
      const fits = push(this.#tables, n, tasks, limits);
      if (fits) writeWorkEvent(this.#tables, n, this.now(), tasks.length);
      return fits;
    });
    if (accepted) this.#signals.emit(queue, { type: 'work' });
    this.raw.pump();
    return accepted;
  }

  async add(queue: string, jobs: readonly NewJob[], limits: Capacity = {}): Promise<AddOutcome[]> {
    const outcomes = await this.#access.write(queue, (n) => add(this.#tables, n, jobs, limits, this.now()));
    this.#signals.emit(queue, { type: 'work' });
    // A member that is cancelled as it is added may complete its batch.
    for (const { spec } of jobs) {
      if (spec.batch && spec.needs && spec.batch.queue !== queue)
        this.#signals.emit(spec.batch.queue, { type: 'work' });
    }
    return outcomes;
  }

  /** Its commit counts as an external one, even within this process. */
  addIn(connection: unknown, queue: string, jobs: readonly NewJob[], limits: Capacity = {}): AddOutcome[] {
    return this.#externalConnections.add(connection, queue, jobs, limits, this.now());
  }

  claim({ queue: name, worker, lease }: WorkerSession, n: number): Promise<Claim> {
    const nonce = newNonce();
    const nothing: Claim = { status: 'lost', entries: [], more: false };
    return this.#access.update(name, nothing, (queue) =>
      claim(this.#tables, { queue, name, worker, lease, n, nonce, now: this.now() }),
    );
  }

  async settle(queue: string, settlements: readonly Settlement[]): Promise<boolean[]> {
    const attempt = (careful: boolean) =>
      this.#access.update(queue, { applied: settlements.map(() => false), woken: [], ended: [] }, (n) =>
        settle(this.#tables, n, settlements, this.now(), careful),
      );
    const { applied, woken, ended } = await attempt(false).catch((error) => {
      if (error instanceof StaleLeaseInBatch) return attempt(true);
      throw error;
    });
    this.#signals.ended(queue, ended, woken);
    this.raw.pump();
    return applied;
  }

  recordProgress(queue: string, lease: Lease, value: ProgressUpdate): Promise<boolean> {
    return this.#access.update(queue, false, (n) => recordProgress(this.#tables, n, lease, value, this.now()));
  }

  join(queue: string, worker: string, session: NewSession): Promise<void> {
    return this.#access.write(queue, (n) => join(this.#tables, n, worker, session, this.now()));
  }

  heartbeat(sessions: readonly WorkerSession[]): Promise<boolean[]> {
    return this.#access.committer.run(() => heartbeat(this.#tables, sessions, this.now()));
  }

  leave(queue: string, worker: string, onlyIfExpired = false): Promise<void> {
    return this.#access.update(queue, undefined, (n) =>
      leave(this.#tables, n, worker, onlyIfExpired ? this.now() : Number.MAX_SAFE_INTEGER),
    );
  }

  leasesOf(queue: string, worker: string): Promise<Lease[]> {
    return this.#access.read(queue, [], (n) => leasesOf(this.#tables, n, worker));
  }

  async sweep(queue: string, options: SweepOptions): Promise<SweepResult> {
    const { promoted, ...result } = await this.#access.update(queue, NOTHING_SWEPT, (n) =>
      sweep(this.#tables, n, queue, this.now(), options),
    );
    if (promoted) this.#signals.emit(queue, { type: 'work' });
    await returnFreeSpace(this.#tables.db, this.#access.committer, 1);
    return result;
  }

  sweepQuiet(queues: readonly QuietQueue[]): Promise<boolean[]> {
    return this.#access.committer.run(() => sweepQuiet(this.#tables, queues, this.now()));
  }

  get(queue: string, ids: readonly string[]): Promise<(Job | undefined)[]> {
    const nothing = ids.map(() => undefined);
    return this.#access.read(queue, nothing, (n) => get(this.#tables, n, queue, ids));
  }

  list(queue: string, options: ListOptions): Promise<JobPage> {
    return this.#access.read(queue, { jobs: [] }, (n) => list(this.#tables, n, queue, options));
  }

  dependents(queue: string, id: string, limit: number): Promise<Dependents> {
    return this.#access.read(queue, { jobs: [], total: 0 }, (n) => dependents(this.#tables, n, id, limit));
  }

  count(queue: string): Promise<Counts> {
    return this.#access.readAll(() => count(this.#tables, this.#tables.find(queue)));
  }

  queues(): Promise<string[]> {
    return this.#access.readAll(() =>
      this.#tables
        .sql("SELECT name FROM queues WHERE name <> '' ORDER BY name")
        .all()
        .map((row) => row.name as string),
    );
  }

  workers(queue: string): Promise<WorkerInfo[]> {
    return this.#access.read(queue, [], (n) => workers(this.#tables, n));
  }

  async reportSuccess(queue: string, ids: readonly string[]): Promise<boolean[]> {
    const { applied, ended, woken } = await this.#access.update(queue, nothing(ids), (n) =>
      reportSuccess(this.#tables, n, ids, this.now()),
    );
    this.#signals.ended(queue, ended, woken);
    return applied;
  }

  async cancel(queue: string, ids: readonly string[], by?: string): Promise<boolean[]> {
    const { applied, tokens, ended, woken } = await this.#access.update(queue, { ...nothing(ids), tokens: [] }, (n) =>
      cancel(this.#tables, n, ids, this.now(), by),
    );
    for (const token of tokens) this.#signals.emit(queue, { type: 'cancelled', token });
    this.#signals.ended(queue, ended, woken);
    return applied;
  }

  async rerun(queue: string, ids: readonly string[], from: readonly Terminal[], by?: string): Promise<boolean[]> {
    const applied = await this.#access.update(queue, nothing(ids).applied, (n) =>
      rerun(this.#tables, n, ids, from, this.now(), by),
    );
    this.#signals.emit(queue, { type: 'work' });
    return applied;
  }

  async update(queue: string, id: string, changes: JobChanges): Promise<State | undefined> {
    const found = await this.#access.update<State | undefined>(queue, undefined, (n) =>
      updateJob(this.#tables, n, id, changes, this.now()),
    );
    this.#signals.emit(queue, { type: 'work' });
    return found;
  }

  remove(queue: string, ids: readonly string[]): Promise<boolean[]> {
    return this.#access.update(queue, nothing(ids).applied, (n) => remove(this.#tables, n, ids));
  }

  async move(queue: string, ids: readonly string[], to: string, by?: string): Promise<MoveOutcome[]> {
    const none: Moved = { outcomes: ids.map(() => 'unknown'), gone: [] };
    const { outcomes, gone } = await this.#access.update(queue, none, (n) =>
      moveJobs(this.#tables, n, ids, to, this.now(), by),
    );
    this.#signals.ended(queue, gone, []);
    for (const name of [queue, to]) this.#signals.emit(name, { type: 'work' });
    return outcomes;
  }

  settings(queue: string): Promise<QueueSettings> {
    return this.#access.read(queue, { paused: false, limits: {} }, (n) => {
      const row = this.#tables.row(n);
      return { paused: row.paused === 1, limits: limitsOf(row), ...breakerSettings(row) };
    });
  }

  async configure(queue: string, settings: Partial<QueueSettings>): Promise<void> {
    await this.#access.write(queue, (n) => configure(this.#tables, n, settings, this.now()));
    if (settings.paused !== true) this.#signals.emit(queue, { type: 'work' });
  }

  async obliterate(queue: string): Promise<void> {
    const woken = await this.#access.update<number[]>(queue, [], (n) => {
      const woken = obliterate(this.#tables, n, this.now());
      forgetUnused(this.#tables, n, this.now());
      return woken;
    });
    this.#signals.emit(queue, { type: 'reset' });
    this.#signals.ended(queue, [], woken);
    await returnFreeSpace(this.#tables.db, this.#access.committer, CLEARING_STEPS);
  }

  /**
   * In this process every end is signalled anyway; ends in other processes appear as external commits, by which time the record
   * must still be there. Most waits are over before the mark that ensures this is worth a commit.
   */
  async watchForEnd(queue: string, ids: readonly string[]): Promise<void> {
    const jobs = await this.get(queue, ids);
    const open: string[] = [];
    jobs.forEach((job, i) => {
      if (job && job.finishedAt === undefined) open.push(ids[i]!);
      else this.#signals.emit(queue, { type: 'finished', id: ids[i]! });
    });
    if (open.length > 0) this.#marks.add(queue, open);
  }

  subscribe(queue: string, listener: (signal: Signal) => void): () => void {
    return this.#signals.subscribe(queue, listener);
  }

  async close(): Promise<void> {
    this.#marks.close();
    this.#signals.close();
    this.#access.committer.close();
    this.#checkpoint();
    this.#tables.db.close();
  }

  backup(file: string): void {
    backUp(this.#tables.db, this.#shown, file);
  }

  /** A copy of the file alone must be complete once nobody uses it any more: whoever leaves last moves the log into it. */
  #checkpoint(): void {
    try {
      this.#tables.db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all();
    } catch {
      // others are using the file, or it is gone
    }
  }
}

/** The result of a change to jobs when there are none. */
function nothing(ids: readonly string[]): { applied: boolean[]; ended: string[]; woken: number[] } {
  return { applied: ids.map(() => false), ended: [], woken: [] };
}
