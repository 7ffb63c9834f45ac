import type { Bytes } from '../../../job/job.js';
import type {
  RawStore,
  Subscription,
  TaskClaim,
  TaskCompletion,
  TaskEvent,
  TaskGroup,
  TaskTopic,
} from '../../raw-store.js';
import type { WorkerSession } from '../../store.js';
import type { QueueAccess } from '../access.js';
import type { Signals } from '../signals.js';
import { leaseToken, QueueCounters, type Tables } from '../tables.js';
import { push } from '../verbs/add.js';
import { countStarts, roomWithinLimits } from '../verbs/claim.js';
import { leasedTask } from '../verbs/settle.js';
import { takeTasks } from './plain-tasks.js';
import { dropOldTaskEvents, TaskEventReader, writeTaskEvent, writeWorkEvent } from './task-events.js';
import { areUnlocked, hasLocks, lockTasks, releaseLock } from './unique-locks.js';

/** Raw tasks on SQLite: see the contract. */
export class SqliteRawStore implements RawStore {
  readonly #tables: Tables;
  readonly #eventReader: TaskEventReader;

  constructor(
    private readonly access: QueueAccess,
    private readonly signals: Signals,
  ) {
    this.#tables = access.tables;
    this.#eventReader = new TaskEventReader(this.#tables, (queue) => signals.subscribe(queue, () => {}));
  }

  /** Delivers task events that other processes or calls have written. */
  pump(): void {
    this.#eventReader.pump();
  }

  async enqueue(queue: string, groups: readonly TaskGroup[]): Promise<boolean[]> {
    const accepted = await this.#change(queue, (n) => groups.map((group) => this.#enqueueOne(n, group)));
    if (accepted.includes(true)) this.signals.emit(queue, { type: 'work' });
    return accepted;
  }

  async claim({ queue, worker, lease }: WorkerSession, n: number, nonce: string): Promise<TaskClaim> {
    const tables = this.#tables;
    return this.access.write(queue, (number) => {
      const now = this.access.now();
      const beat = tables.sql(
        'UPDATE sessions SET deadline = max(deadline, ?) WHERE queue = ? AND worker = ? AND deadline >= 0',
      );
      if (beat.run(now + lease, number, worker).changes !== 1) return { status: 'lost', claimed: [] };
      const counters = new QueueCounters(tables, number);
      if (counters.row.paused) return { status: 'paused', claimed: [] };
      const claim = `${counters.row.claims}.${nonce}`;
      const leave = roomWithinLimits(counters, n, now);
      const entries =
        counters.get('tasks') > 0 ? takeTasks(tables, counters, { queue: number, worker }, claim, leave.n) : [];
      countStarts(tables, number, leave, entries.length);
      counters.add('claims', entries.length);
      counters.add('ready', -entries.length);
      counters.add('active', entries.length);
      counters.write();
      return { status: 'ok', claimed: entries.map(({ lease: { token }, task }) => ({ token, task: task! })) };
    });
  }

  finish(queue: string, ends: readonly TaskCompletion[]): Promise<boolean[]> {
    return this.#change(queue, (n) => {
      const counters = new QueueCounters(this.#tables, n);
      const locked = hasLocks(this.#tables, n);
      const applied = ends.map((end) => this.#finishOne(counters, end, locked));
      // With a concurrency limit, an ended task lets another one start.
      if (counters.row.pace !== null && counters.get('tasks') > 0)
        writeWorkEvent(this.#tables, n, this.access.now(), 1);
      counters.write();
      return applied;
    });
  }

  count(queue: string): Promise<number> {
    return this.access.read(queue, 0, (n) => this.#tables.row(n).tasks);
  }

  peek(queue: string): Promise<Bytes | undefined> {
    return this.access.read(queue, undefined, (n) => this.#bodies(n, 1)[0]);
  }

  tasks(queue: string): Promise<Bytes[]> {
    return this.access.read(queue, [], (n) => this.#bodies(n, -1));
  }

  remove(queue: string, task: Bytes): Promise<number> {
    return this.#change(queue, (n) => {
      const tables = this.#tables;
      const { changes } = tables.sql('DELETE FROM tasks WHERE queue = ? AND worker IS NULL AND body = ?').run(n, task);
      this.#countGone(n, Number(changes), Number(changes) * task.length);
      tables.sql('DELETE FROM seals WHERE queue = ? AND body = ? AND task IS NULL').run(n, task);
      writeTaskEvent(tables, n, this.access.now(), { type: 'cancel', task });
      return Number(changes);
    });
  }

  clear(queue: string): Promise<void> {
    return this.#change(queue, (n) => {
      const tables = this.#tables;
      const found = tables
        .sql(
          'SELECT count(*) AS tasks, coalesce(sum(length(body)), 0) AS bytes FROM tasks WHERE queue = ? AND worker IS NULL',
        )
        .get(n)!;
      tables.sql('DELETE FROM tasks WHERE queue = ? AND worker IS NULL').run(n);
      this.#countGone(n, found.tasks as number, found.bytes as number);
      tables.sql('DELETE FROM seals WHERE queue = ? AND task IS NULL').run(n);
      writeTaskEvent(tables, n, this.access.now(), { type: 'delete' });
    });
  }

  findLeased(queue: string, task: Bytes): Promise<string[]> {
    return this.access.read(queue, [], (n) =>
      this.#tables
        .sql('SELECT n, token FROM tasks WHERE queue = ? AND worker IS NOT NULL AND body = ?')
        .all(n, task)
        .map(leaseToken),
    );
  }

  expireSession(queue: string, worker: string): Promise<boolean> {
    return this.access.write(queue, (n) => {
      const update = this.#tables.sql('UPDATE sessions SET deadline = -1 WHERE queue = ? AND worker = ?');
      return update.run(n, worker).changes === 1;
    });
  }

  updateSession(queue: string, worker: string, info: string): Promise<boolean> {
    return this.access.write(queue, (n) => {
      const update = this.#tables.sql('UPDATE sessions SET info = ? WHERE queue = ? AND worker = ? AND deadline >= 0');
      return update.run(info, n, worker).changes === 1;
    });
  }

  subscribe(queue: string, about: TaskTopic, listener: (event: TaskEvent) => void): Subscription {
    return this.#eventReader.listen(queue, (event) => {
      if ((event.type === 'done') === (about === 'ends')) listener(event);
    });
  }

  /** A write that may have created task events. */
  async #change<T>(queue: string, work: (queue: number) => T): Promise<T> {
    const result = await this.access.write(queue, (n) => {
      dropOldTaskEvents(this.#tables, this.access.now());
      return work(n);
    });
    this.pump();
    return result;
  }

  #enqueueOne(queue: number, { tasks, unique }: TaskGroup): boolean {
    const { tables, now } = this.access;
    if (unique && !areUnlocked(tables, queue, tasks)) return false;
    push(tables, queue, tasks, {});
    if (unique) lockTasks(tables, queue, tasks);
    if (tasks.length > 0) writeTaskEvent(tables, queue, now(), { type: 'work', count: tasks.length });
    return true;
  }

  #finishOne(counters: QueueCounters, { token, result }: TaskCompletion, locked: boolean): boolean {
    const { tables, now } = this.access;
    const row = leasedTask(tables, counters.queue, { worker: '', token });
    if (!row) return false;
    const n = row.n as number;
    if (locked) releaseLock(tables, counters.queue, n);
    const gone = tables.sql('DELETE FROM tasks WHERE n = ? RETURNING worker, body').get(n)!;
    counters.add('active', -1);
    const end = { worker: gone.worker as string, token, task: gone.body as Bytes };
    writeTaskEvent(tables, counters.queue, now(), {
      type: 'done',
      end: result === undefined ? end : { ...end, result },
    });
    return true;
  }

  #bodies(queue: number, limit: number): Bytes[] {
    return this.#tables
      .sql('SELECT body FROM tasks WHERE queue = ? AND worker IS NULL ORDER BY seq LIMIT ?')
      .all(queue, limit)
      .map((row) => row.body as Bytes);
  }

  #countGone(queue: number, tasks: number, bytes: number): void {
    const counters = new QueueCounters(this.#tables, queue);
    counters.add('tasks', -tasks);
    counters.add('ready', -tasks);
    counters.add('bytes', -bytes);
    counters.write();
  }
}
