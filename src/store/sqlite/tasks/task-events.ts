import type { Bytes } from '../../../job/job.js';
import type { CompletedTask, Subscription, TaskEvent } from '../../raw-store.js';
import type { Row, Value } from '../file/driver.js';
import type { Tables } from '../tables.js';

/** How many milliseconds a task event is kept: a process that has not read it by then misses it. */
const SHELF_LIFE = 30_000;
const SWEEP = 100;

type Written = Exclude<TaskEvent, { type: 'reset' | 'done' }> | { type: 'done'; end: CompletedTask };

/** Writes a task event, in the transaction of the change it describes. */
export function writeTaskEvent(tables: Tables, queue: number, now: number, event: Written): void {
  const done = event.type === 'done' ? event.end : undefined;
  const values: Value[] = [
    queue,
    now,
    event.type,
    event.type === 'work' ? (event.count ?? null) : null,
    done?.worker ?? null,
    done?.token ?? null,
    done?.task ?? (event.type === 'cancel' ? event.task : null),
    done?.result ?? null,
  ];
  tables
    .sql('INSERT INTO news (queue, at, type, count, worker, token, task, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
    .run(...values);
}

/** The engine added raw tasks: writes an event if a session claims raw tasks directly. */
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

type Listener = (event: TaskEvent) => void;

/** Delivers events written since the last read, by any process. */
export class TaskEventReader {
  readonly #listeners = new Map<string, Set<Listener>>();
  #seen = 0;

  constructor(
    private readonly tables: Tables,
    /** Watches for commits of other processes while there are listeners; returns a function that stops it. */
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

  /** Empty if the file cannot be read at the moment: the next read returns them. */
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
