import { randomBytes } from 'node:crypto';
import { CroreError } from '../../errors.js';
import { writeAction } from '../../job/attempt.js';
import { type Bytes, type Job, type Lease, type NewJob, STATES, type State, type Terminal } from '../../job/job.js';
import { markedClaim } from '../lost-claim.js';
import { changeLine, moveLine } from '../manual-changes.js';
import { type SettleReply, settledInAll } from '../repeated-settle.js';
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
import { json, numbers, readFlags, texts } from './connection/arguments.js';
import { batchStore, eventStore, historyStore, scheduleStore } from './facets.js';
import { JobAdder } from './job-adder.js';
import { NoteWriter } from './notes.js';
import { PostgresRawStore } from './raw-store.js';
import { count, dependents, get, leasesOf, list, queues, settings, stateNumbers, workers } from './reads.js';
import { readClaim, readLost } from './records/entries.js';
import { writePayload } from './records/new-jobs.js';
import { doneArguments, doneTaskArguments, writeSettlement } from './records/settlements.js';
import { TransactionalAdder } from './transactions/add-in.js';
import type { View } from './view.js';

export interface PostgresStoreOptions {
  view: View;
  identity: unknown;
  warnings: readonly string[];
  threadUrl?: string;
}

/** Every verb is one function in the database, and one round trip: see sql/. */
export class PostgresStore implements Store {
  readonly schedules: ScheduleStore;
  readonly events: EventStore;
  readonly sources: SourceStore;
  readonly batches: BatchStore;
  readonly history: HistoryStore;
  readonly raw: PostgresRawStore;
  readonly maxParallelClaims = 2;
  readonly warnings: readonly string[];
  readonly threadUrl?: string;
  readonly #view: View;
  readonly #adder: JobAdder;
  readonly #inTransactions: TransactionalAdder;
  readonly #notes: NoteWriter;

  constructor({ view, identity, warnings, threadUrl }: PostgresStoreOptions) {
    this.#view = view;
    this.warnings = warnings;
    this.threadUrl = threadUrl;
    this.#adder = new JobAdder(view);
    this.#inTransactions = new TransactionalAdder(view, identity);
    this.#notes = new NoteWriter(view);
    this.schedules = scheduleStore(view);
    this.events = eventStore(view);
    this.sources = this.#adder.sources;
    this.batches = batchStore(view);
    this.history = historyStore(view);
    this.raw = new PostgresRawStore(view);
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

  addInAsync(
    connection: unknown,
    queue: string,
    jobs: readonly NewJob[],
    limits: Capacity = {},
  ): Promise<AddOutcome[]> {
    return this.#inTransactions.add(connection, queue, jobs, limits);
  }

  async claim({ queue, worker, lease }: WorkerSession, n: number): Promise<Claim> {
    const nonce = randomBytes(9).toString('base64url');
    const args = [worker, lease, n, nonce];
    const send = () => this.#view.client.rows('claim', [this.#view.time(), queue, ...args], false);
    const offer = { queue, args, count: n, send };
    const rows = await markedClaim(nonce, () => this.#view.handover?.offer(offer) ?? send());
    return readClaim(queue, worker, rows);
  }

  async settle(queue: string, settlements: readonly Settlement[]): Promise<boolean[]> {
    if (settlements.length === 0) return [];
    if (!this.#notes.idle) await this.#notes.written(settlements.map(({ lease }) => lease));
    const applied = await this.#settle(queue, settlements);
    if (applied.includes(true)) this.#emit(queue, { type: 'work' });
    return applied;
  }

  async #settle(queue: string, settlements: readonly Settlement[]): Promise<boolean[]> {
    const tasks = doneTaskArguments(settlements);
    if (tasks) return this.#view.client.flags('done_tasks', [this.#view.time(), queue, ...tasks]);
    const jobs = doneArguments(settlements);
    const reply = await (jobs
      ? this.#reply('done', [queue, ...jobs])
      : this.#reply('settle', [queue, json(settlements.map(writeSettlement))]));
    return settledInAll(this, queue, settlements, reply);
  }

  recordProgress(queue: string, lease: Lease, note: ProgressUpdate): Promise<boolean> {
    return this.#notes.write(queue, lease, note);
  }

  async join(queue: string, worker: string, { lease, info, raw = false }: NewSession): Promise<void> {
    await this.#view.client.value('join', [this.#view.time(), queue, worker, lease, info, raw]);
  }

  async heartbeat(sessions: readonly WorkerSession[]): Promise<boolean[]> {
    if (sessions.length === 0) return [];
    const args = [
      texts(sessions.map(({ queue }) => queue)),
      texts(sessions.map(({ worker }) => worker)),
      numbers(sessions.map(({ lease }) => lease)),
    ];
    return readFlags(await this.#view.client.value('heartbeat', [this.#view.time(), ...args]));
  }

  async leave(queue: string, worker: string, onlyIfExpired = false): Promise<void> {
    await this.#view.client.value('leave', [this.#view.time(), queue, worker, onlyIfExpired]);
  }

  leasesOf(queue: string, worker: string): Promise<Lease[]> {
    return leasesOf(this.#view.client, queue, worker);
  }

  async sweep(queue: string, { lease, every }: SweepOptions): Promise<SweepResult> {
    const rows = await this.#view.client.rows('sweep', [this.#view.time(), queue, lease, every]);
    const last = rows.pop();
    if (!last) return { lost: [], more: false };
    if (last.promoted === true) this.#emit(queue, { type: 'work' });
    const dropped = last.dropped as number | null;
    return {
      lost: rows.map((row) => readLost(queue, row)),
      more: last.more === true,
      quietFor: last.quiet as number,
      ...(dropped !== null && dropped > 0 ? { droppedDead: dropped } : {}),
    };
  }

  /** A hundred at a time: each is locked until the call has ended. */
  async sweepQuiet(queues: readonly QuietQueue[]): Promise<boolean[]> {
    const swept: boolean[] = [];
    for (let i = 0; i < queues.length; i += 100) {
      const part = queues.slice(i, i + 100);
      const args = [texts(part.map(({ queue }) => queue)), numbers(part.map(({ lease }) => lease))];
      swept.push(...readFlags(await this.#view.client.value('sweep_quiet', [this.#view.time(), ...args])));
    }
    return swept;
  }

  get(queue: string, ids: readonly string[]): Promise<(Job | undefined)[]> {
    return get(this.#view.client, queue, ids);
  }

  list(queue: string, options: ListOptions): Promise<JobPage> {
    return list(this.#view.client, queue, options);
  }

  dependents(queue: string, id: string, limit: number): Promise<Dependents> {
    return dependents(this.#view.client, queue, id, limit);
  }

  count(queue: string): Promise<Counts> {
    return count(this.#view.client, queue);
  }

  queues(): Promise<string[]> {
    return queues(this.#view.client);
  }

  workers(queue: string): Promise<WorkerInfo[]> {
    return workers(this.#view.client, queue);
  }

  reportSuccess(queue: string, ids: readonly string[]): Promise<boolean[]> {
    return this.#flags('report_success', [queue, texts(ids)]);
  }

  cancel(queue: string, ids: readonly string[], by?: string): Promise<boolean[]> {
    const line = by === undefined ? null : writeAction('cancelled', this.now(), by);
    return this.#flags('cancel', [queue, texts(ids), line]);
  }

  async rerun(queue: string, ids: readonly string[], from: readonly Terminal[], by?: string): Promise<boolean[]> {
    const line = by === undefined ? null : writeAction('retried', this.now(), by);
    const args = [this.#view.time(), queue, texts(ids), stateNumbers(from), line];
    const applied = await this.#view.client.flags('rerun', args);
    this.#emit(queue, { type: 'work' });
    return applied;
  }

  async update(queue: string, id: string, changes: JobChanges): Promise<State | undefined> {
    const { payload, priority, at, delay } = changes;
    const args = [
      json(payload === undefined ? null : writePayload(payload)),
      priority ?? null,
      at ?? null,
      delay ?? null,
      changeLine(changes, this.now()) ?? null,
    ];
    const found = (await this.#view.client.value('update_job', [this.#view.time(), queue, id, ...args])) as
      | number
      | null;
    this.#emit(queue, { type: 'work' });
    return found === null ? undefined : STATES[found];
  }

  remove(queue: string, ids: readonly string[]): Promise<boolean[]> {
    return this.#view.client.flags('remove', [queue, texts(ids)]);
  }

  async move(queue: string, ids: readonly string[], to: string, by?: string): Promise<MoveOutcome[]> {
    if (ids.length === 0) return [];
    const line = moveLine(queue, this.now(), by) ?? null;
    const { rows, repeated } = await this.#view.client.run('move', [this.#view.time(), queue, texts(ids), to, line]);
    for (const name of [queue, to]) this.#emit(name, { type: 'work' });
    // A first try whose answer was lost may have moved what is missing now.
    return rows.map(({ outcome }) => (repeated && outcome === 'unknown' ? 'moved' : (outcome as MoveOutcome)));
  }

  settings(queue: string): Promise<QueueSettings> {
    return settings(this.#view.client, queue);
  }

  async configure(queue: string, { paused, limits, breaker }: Partial<QueueSettings>): Promise<void> {
    const kept = breaker && { failures: breaker.failures, pause: breaker.pause };
    const args = [queue, paused ?? null, json(limits ?? null), json(breaker === undefined ? null : (kept ?? {}))];
    await this.#view.client.value('configure', [this.#view.time(), ...args]);
    if (paused !== true) this.#emit(queue, { type: 'work' });
  }

  async obliterate(queue: string): Promise<void> {
    await this.#view.client.value('obliterate', [this.#view.time(), queue]);
    this.#emit(queue, { type: 'reset' });
  }

  async watchForEnd(queue: string, ids: readonly string[]): Promise<void> {
    const rows = await this.#view.client.rows('watch_for_end', [queue, texts(ids)]);
    for (const row of rows) this.#emit(queue, { type: 'finished', id: row.id as string });
  }

  subscribe(queue: string, listener: (signal: Signal) => void): () => void {
    return this.#view.signals.subscribe(queue, listener);
  }

  backup(): never {
    const { schema } = this.#view.client;
    const how = `use pg_dump, for instance pg_dump --schema='${schema}' --file=FILE`;
    throw new CroreError(
      'STORE_UNSUPPORTED',
      `backup: only SQLite files are copied; for this schema on PostgreSQL, ${how}`,
    );
  }

  async close(): Promise<void> {
    this.raw.close();
    await this.#view.signals.close();
    await this.#view.client.close();
  }

  /** An entry that a lost first try may have changed counts as changed. */
  async #flags(name: 'cancel' | 'report_success', args: Parameters<View['related']>[1]): Promise<boolean[]> {
    const { applied, repeated } = await this.#reply(name, args);
    return applied.map((flag) => repeated || flag);
  }

  async #reply(name: string, args: Parameters<View['related']>[1]): Promise<SettleReply> {
    const { rows, repeated } = await this.#view.related(name, args);
    return { applied: readFlags(rows[0]![name]), repeated };
  }

  /** To listeners in this process: the functions notify others only if somebody is waiting. */
  #emit(queue: string, signal: Signal): void {
    this.#view.signals.emit(queue, signal);
  }
}
