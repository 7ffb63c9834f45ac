import type { Bytes } from '../../job/job.js';
import type { Subscription, TaskEvent, TaskTopic } from '../raw-store.js';
import type { Row } from './connection/client.js';
import type { View } from './view.js';

type Listener = (event: TaskEvent) => void;

/** How often a reader announces itself; the server forgets it after a minute. */
const ANNOUNCE = 20_000;

interface Reader {
  listeners: Record<TaskTopic, Set<Listener>>;
  /** The position of the last event that was read. */
  seen: number;
  reading: boolean;
  again: boolean;
  stop: () => void;
}

/** Delivers task events, which are rows: a notification says that there are new ones. */
export class TaskEvents {
  readonly #readers = new Map<string, Reader>();
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly view: View) {}

  subscribe(queue: string, topic: TaskTopic, listener: Listener): Subscription {
    const known = this.#readers.get(queue);
    const reader: Reader = known ?? {
      listeners: { news: new Set(), ends: new Set() },
      seen: -1,
      reading: false,
      again: false,
      stop: () => {},
    };
    reader.listeners[topic].add(listener);
    const heard = this.view.signals.onNews(queue, (missed) => this.#notice(queue, reader, missed));
    if (known) heard.stop();
    else {
      this.#readers.set(queue, reader);
      reader.stop = heard.stop;
      this.#timer ??= setInterval(() => this.#announceAll(), ANNOUNCE).unref();
    }
    const ready = heard.ready.then(() => this.#announce(queue, reader, topic)).catch(() => {});
    return { ready, stop: () => this.#stop(queue, reader, topic, listener) };
  }

  close(): void {
    clearInterval(this.#timer);
    this.#readers.clear();
  }

  #stop(queue: string, reader: Reader, topic: TaskTopic, listener: Listener): void {
    reader.listeners[topic].delete(listener);
    if (reader.listeners.news.size + reader.listeners.ends.size > 0 || this.#readers.get(queue) !== reader) return;
    reader.stop();
    this.#readers.delete(queue);
  }

  #announceAll(): void {
    for (const [queue, reader] of this.#readers) {
      for (const topic of ['news', 'ends'] as const) {
        if (reader.listeners[topic].size > 0) this.#announce(queue, reader, topic).catch(() => {});
      }
    }
  }

  async #announce(queue: string, reader: Reader, topic: TaskTopic): Promise<void> {
    const last = (await this.view.client.value('read_news_of', [queue, topic])) as number;
    if (reader.seen < 0) reader.seen = last;
  }

  #notice(queue: string, reader: Reader, missed: boolean): void {
    if (missed)
      for (const set of Object.values(reader.listeners)) for (const listener of set) listener({ type: 'reset' });
    if (missed) this.#announceAll();
    if (reader.reading) reader.again = true;
    else void this.#read(queue, reader);
  }

  async #read(queue: string, reader: Reader): Promise<void> {
    if (reader.seen < 0) return;
    reader.reading = true;
    do {
      reader.again = false;
      const rows = await this.#unread(queue, reader.seen);
      for (const row of rows) deliver(reader, row);
    } while (reader.again);
    reader.reading = false;
  }

  /** Empty if the server cannot be reached: the next notification asks again. */
  async #unread(queue: string, seen: number): Promise<Row[]> {
    const text = `select w.* from crore.news w join crore.queues q on q.n = w.queue where q.name = $1 and w.n > $2::bigint order by w.n`;
    return this.view.client.read(text, [queue, seen]).catch(() => []);
  }
}

function deliver(reader: Reader, row: Row): void {
  reader.seen = row.n as number;
  const event = toEvent(row);
  for (const listener of reader.listeners[event.type === 'done' ? 'ends' : 'news']) listener(event);
}

function toEvent(row: Row): TaskEvent {
  switch (row.type) {
    case 'work':
      return row.count === null ? { type: 'work' } : { type: 'work', count: row.count as number };
    case 'done': {
      const { worker, token, task } = row as { worker: string; token: string; task: Bytes };
      const end = { worker, token, task };
      return { type: 'done', ends: [row.result === null ? end : { ...end, result: row.result as string }] };
    }
    case 'cancel':
      return { type: 'cancel', task: row.task as Bytes };
    default:
      return { type: 'delete' };
  }
}
