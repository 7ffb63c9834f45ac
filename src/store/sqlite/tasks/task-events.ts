import type { Bytes } from '../../../job/job.js';
import type { CompletedTask, Subscription, TaskEvent } from '../../raw-store.js';
import type { Row, Value } from '../file/driver.js';
import type { Tables } from '../tables.js';

/** Milliseconds for which a row of news stays: whoever has not read it by then has missed it. */
const SHELF_LIFE = 30_000;
const SWEEP = 100;

type Written = Exclude<TaskEvent, { type: 'reset' | 'done' }> | { type: 'done'; end: CompletedTask };

/** Writes a piece of news, in the transaction of what it tells. */
export function writeTaskEvent(tables: Tables, queue: number, now: number, news: Written): void {
  const done = news.type === 'done' ? news.end : undefined;
  const values: Value[] = [
    queue,
    now,
    news.type,
    news.type === 'work' ? (news.count ?? null) : null,
    done?.worker ?? null,
    done?.token ?? null,
    done?.task ?? (news.type === 'cancel' ? news.task : null),
    done?.result ?? null,
  ];
  tables
    .sql('INSERT INTO news (queue, at, type, count, worker, token, task, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
    .run(...values);
}

/** Raw tasks came by a way of the engine's: told where somebody takes them by hand. */
export function writeWorkEvent(tables: Tables, queue: number, now: number, count: number): void {
  if (!tables.sql('SELECT 1 FROM sessions WHERE queue = ? AND raw = 1 LIMIT 1').get(queue)) return;
  writeTaskEvent(tables, queue, now, { type: 'work', count });
  dropOldTaskEvents(tables, now);
}

export function dropOldTaskEvents(tables: Tables, now: number): void {
  tables
    .sql(`DELETE FROM news WHERE n IN (SELECT n FROM news ORDER BY n LIMIT ${SWEEP}) AND at < ?`)
    .run(now - SHELF_LIFE);
}

type Listener = (news: TaskEvent) => void;

/** Hands on what was written since the last look, by whichever process. */
export class TaskEventReader {
  readonly #listeners = new Map<string, Set<Listener>>();
  #seen = 0;

  constructor(
    private readonly tables: Tables,
    /** Has other processes watched while somebody listens; returns the way to stop. */
    private readonly watch: (queue: string) => () => void,
  ) {}

  listen(queue: string, listener: Listener): Subscription {
    if (this.#listeners.size === 0) this.#seen = this.#last();
    const set = this.#listeners.get(queue) ?? new Set();
    this.#listeners.set(queue, set);
    set.add(listener);
    const unwatch = this.watch(queue);
    const stop = () => {
      if (!set.delete(listener)) return;
      if (set.size === 0) this.#listeners.delete(queue);
      unwatch();
    };
    return { ready: Promise.resolve(), stop };
  }

  pump(): void {
    if (this.#listeners.size === 0) return;
    for (const row of this.#unread()) {
      this.#seen = row.n as number;
      for (const listener of this.#listeners.get(row.name as string) ?? []) listener(read(row));
    }
  }

  /** Empty when the file cannot be read just now: the next look shows it. */
  #unread(): Row[] {
    try {
      return this.tables
        .sql(
          'SELECT news.*, queues.name FROM news JOIN queues ON queues.n = news.queue WHERE news.n > ? ORDER BY news.n',
        )
        .all(this.#seen);
    } catch {
      return [];
    }
  }

  #last(): number {
    return (this.tables.sql('SELECT max(n) AS n FROM news').get()?.n as number | null) ?? 0;
  }
}

function read(row: Row): TaskEvent {
  switch (row.type) {
    case 'work':
      return row.count === null ? { type: 'work' } : { type: 'work', count: row.count as number };
    case 'done':
      return { type: 'done', ends: [readEnd(row)] };
    case 'cancel':
      return { type: 'cancel', task: row.task as Bytes };
    default:
      return { type: 'delete' };
  }
}

function readEnd(row: Row): CompletedTask {
  return {
    worker: row.worker as string,
    token: row.token as string,
    task: row.task as Bytes,
    ...(row.result === null ? {} : { result: row.result as string }),
  };
}
