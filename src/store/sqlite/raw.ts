import type { Bytes } from '../../job/job.js';
import type { Ear, News, RawStore, Take, TaskEnd, TaskGroup, Topic } from '../raw.js';
import type { Beat } from '../store.js';
import { push } from './add.js';
import { countStarts, paceLeaves, takeTasks } from './claim.js';
import { forgetOld, Newsstand, tell, tellWork } from './news.js';
import { areFree, hasSeals, putSeals, release } from './seals.js';
import { leasedTask } from './settle.js';
import { leaseToken, type Tables, Tally } from './table.js';

export interface SqliteRawSetup {
  tables: Tables;
  now: () => number;
  /** Runs inside the shared transaction. */
  write: <T>(queue: string, work: (queue: number) => T) => Promise<T>;
  read: <T>(queue: string, nothing: T, work: (queue: number) => T) => Promise<T>;
  /** Tells workers of this process that there is something to claim. */
  work: (queue: string) => void;
  watch: (queue: string) => () => void;
}

/** Raw tasks by hand on SQLite: see the contract. */
export class SqliteRaw implements RawStore {
  readonly #newsstand: Newsstand;

  constructor(private readonly setup: SqliteRawSetup) {
    this.#newsstand = new Newsstand(setup.tables, setup.watch);
  }

  /** Others, or other calls, may have written news. */
  pump(): void {
    this.#newsstand.pump();
  }

  async enqueue(queue: string, groups: readonly TaskGroup[]): Promise<boolean[]> {
    const accepted = await this.#change(queue, (n) => groups.map((group) => this.#enqueueOne(n, group)));
    if (accepted.includes(true)) this.setup.work(queue);
    return accepted;
  }

  async take({ queue, worker, lease }: Beat, n: number, nonce: string): Promise<Take> {
    const { tables } = this.setup;
    return this.setup.write(queue, (number) => {
      const now = this.setup.now();
      const beat = tables.sql(
        'UPDATE sessions SET deadline = max(deadline, ?) WHERE queue = ? AND worker = ? AND deadline >= 0',
      );
      if (beat.run(now + lease, number, worker).changes !== 1) return { status: 'lost', taken: [] };
      const tally = new Tally(tables, number);
      if (tally.row.paused) return { status: 'paused', taken: [] };
      const claim = `${tally.row.claims}.${nonce}`;
      const leave = paceLeaves(tally, n, now);
      const entries = tally.get('tasks') > 0 ? takeTasks(tables, tally, { queue: number, worker }, claim, leave.n) : [];
      countStarts(tables, number, leave, entries.length);
      tally.add('claims', entries.length);
      tally.add('ready', -entries.length);
      tally.add('active', entries.length);
      tally.write();
      return { status: 'ok', taken: entries.map(({ lease: { token }, task }) => ({ token, task: task! })) };
    });
  }

  finish(queue: string, ends: readonly TaskEnd[]): Promise<boolean[]> {
    return this.#change(queue, (n) => {
      const tally = new Tally(this.setup.tables, n);
      const sealed = hasSeals(this.setup.tables, n);
      const applied = ends.map((end) => this.#finishOne(tally, end, sealed));
      // Where only so many may be in process, an end lets another begin.
      if (tally.row.pace !== null && tally.get('tasks') > 0) tellWork(this.setup.tables, n, this.setup.now(), 1);
      tally.write();
      return applied;
    });
  }

  count(queue: string): Promise<number> {
    return this.setup.read(queue, 0, (n) => this.setup.tables.row(n).tasks);
  }

  waiting(queue: string): Promise<number> {
    return this.count(queue);
  }

  peek(queue: string): Promise<Bytes | undefined> {
    return this.setup.read(queue, undefined, (n) => this.#bodies(n, 1)[0]);
  }

  tasks(queue: string): Promise<Bytes[]> {
    return this.setup.read(queue, [], (n) => this.#bodies(n, -1));
  }

  remove(queue: string, task: Bytes): Promise<number> {
    return this.#change(queue, (n) => {
      const { tables } = this.setup;
      const { changes } = tables.sql('DELETE FROM tasks WHERE queue = ? AND worker IS NULL AND body = ?').run(n, task);
      this.#countGone(n, Number(changes), Number(changes) * task.length);
      tables.sql('DELETE FROM seals WHERE queue = ? AND body = ? AND task IS NULL').run(n, task);
      tell(tables, n, this.setup.now(), { type: 'cancel', task });
      return Number(changes);
    });
  }

  clear(queue: string): Promise<void> {
    return this.#change(queue, (n) => {
      const { tables } = this.setup;
      const found = tables
        .sql(
          'SELECT count(*) AS tasks, coalesce(sum(length(body)), 0) AS bytes FROM tasks WHERE queue = ? AND worker IS NULL',
        )
        .get(n)!;
      tables.sql('DELETE FROM tasks WHERE queue = ? AND worker IS NULL').run(n);
      this.#countGone(n, found.tasks as number, found.bytes as number);
      tables.sql('DELETE FROM seals WHERE queue = ? AND task IS NULL').run(n);
      tell(tables, n, this.setup.now(), { type: 'delete' });
    });
  }

  matching(queue: string, task: Bytes): Promise<string[]> {
    return this.setup.read(queue, [], (n) =>
      this.setup.tables
        .sql('SELECT n, token FROM tasks WHERE queue = ? AND worker IS NOT NULL AND body = ?')
        .all(n, task)
        .map(leaseToken),
    );
  }

  doom(queue: string, worker: string): Promise<boolean> {
    return this.setup.write(queue, (n) => {
      const update = this.setup.tables.sql('UPDATE sessions SET deadline = -1 WHERE queue = ? AND worker = ?');
      return update.run(n, worker).changes === 1;
    });
  }

  bury(queue: string, worker: string): Promise<void> {
    return this.setup.write(queue, (n) => {
      const remove = this.setup.tables.sql('DELETE FROM sessions WHERE queue = ? AND worker = ? AND deadline <= ?');
      remove.run(n, worker, this.setup.now());
    });
  }

  inform(queue: string, worker: string, info: string): Promise<boolean> {
    return this.setup.write(queue, (n) => {
      const update = this.setup.tables.sql(
        'UPDATE sessions SET info = ? WHERE queue = ? AND worker = ? AND deadline >= 0',
      );
      return update.run(info, n, worker).changes === 1;
    });
  }

  listen(queue: string, about: Topic, listener: (news: News) => void): Ear {
    return this.#newsstand.listen(queue, (news) => {
      if ((news.type === 'done') === (about === 'ends')) listener(news);
    });
  }

  /** A write that may have made news. */
  async #change<T>(queue: string, work: (queue: number) => T): Promise<T> {
    const result = await this.setup.write(queue, (n) => {
      forgetOld(this.setup.tables, this.setup.now());
      return work(n);
    });
    this.pump();
    return result;
  }

  #enqueueOne(queue: number, { tasks, unique }: TaskGroup): boolean {
    const { tables, now } = this.setup;
    if (unique && !areFree(tables, queue, tasks)) return false;
    push(tables, queue, tasks, {});
    if (unique) putSeals(tables, queue, tasks);
    if (tasks.length > 0) tell(tables, queue, now(), { type: 'work', count: tasks.length });
    return true;
  }

  #finishOne(tally: Tally, { token, result }: TaskEnd, sealed: boolean): boolean {
    const { tables, now } = this.setup;
    const row = leasedTask(tables, tally.queue, { worker: '', token });
    if (!row) return false;
    const n = row.n as number;
    if (sealed) release(tables, tally.queue, n);
    const gone = tables.sql('DELETE FROM tasks WHERE n = ? RETURNING worker, body').get(n)!;
    tally.add('active', -1);
    const end = { worker: gone.worker as string, token, task: gone.body as Bytes };
    tell(tables, tally.queue, now(), { type: 'done', end: result === undefined ? end : { ...end, result } });
    return true;
  }

  #bodies(queue: number, limit: number): Bytes[] {
    return this.setup.tables
      .sql('SELECT body FROM tasks WHERE queue = ? AND worker IS NULL ORDER BY seq LIMIT ?')
      .all(queue, limit)
      .map((row) => row.body as Bytes);
  }

  #countGone(queue: number, tasks: number, bytes: number): void {
    const tally = new Tally(this.setup.tables, queue);
    tally.add('tasks', -tasks);
    tally.add('ready', -tasks);
    tally.add('bytes', -bytes);
    tally.write();
  }
}
