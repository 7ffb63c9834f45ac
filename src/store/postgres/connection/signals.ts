import postgres, { type Sql } from 'postgres';
import type { Signal } from '../../store.js';
import type { DriverOptions } from './options.js';

type Listener = (signal: Signal) => void;

interface QueueListeners {
  signals: Set<Listener>;
  /** Called when there may be new task events; true if some may have been missed. */
  news: Set<(missed: boolean) => void>;
}

const LONGEST_PAUSE = 1_000;
/** How often listeners are told to look for themselves if there are no notifications. */
const POLL = 1_000;

/**
 * Notifications of the schema over one connection, opened for the first listener. After a reconnect, every listener is told that it may have missed
 * some: the server does not keep them. Without a connection to listen on, they are told so every second.
 */
export class Signals {
  readonly #queues = new Map<string, QueueListeners>();
  #sql: Sql | undefined;
  #poll: NodeJS.Timeout | undefined;
  #ready: Promise<void> = Promise.resolve();
  #listens = false;
  #closed = false;
  #retry: NodeJS.Timeout | undefined;
  #pause = 10;

  constructor(
    private readonly options: DriverOptions | undefined,
    private readonly channel: string,
  ) {}

  subscribe(queue: string, listener: Listener): () => void {
    const set = this.#of(queue).signals;
    set.add(listener);
    this.#start();
    // A listener may have claimed before it was heard: it checks again.
    if (this.#listens) setImmediate(() => set.has(listener) && listener({ type: 'reset' }));
    return () => {
      set.delete(listener);
      this.#forget(queue);
    };
  }

  /** Resolves once notifications arrive, or the attempt has failed. */
  onNews(queue: string, listener: (missed: boolean) => void): { ready: Promise<void>; stop: () => void } {
    const set = this.#of(queue).news;
    set.add(listener);
    this.#start();
    const stop = () => {
      set.delete(listener);
      this.#forget(queue);
    };
    return { ready: this.#ready, stop };
  }

  /** To listeners in this process. */
  emit(queue: string, signal: Signal): void {
    for (const listener of this.#queues.get(queue)?.signals ?? []) listener(signal);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    clearInterval(this.#poll);
    this.#queues.clear();
    await this.#sql?.end({ timeout: 0 }).catch(() => {});
  }

  #of(queue: string): QueueListeners {
    const known = this.#queues.get(queue);
    if (known) return known;
    const made: QueueListeners = { signals: new Set(), news: new Set() };
    this.#queues.set(queue, made);
    return made;
  }

  #forget(queue: string): void {
    const found = this.#queues.get(queue);
    if (found && found.signals.size + found.news.size === 0) this.#queues.delete(queue);
  }

  #start(): void {
    if (this.#sql || this.#closed) return;
    if (!this.options) {
      this.#poll ??= setInterval(() => this.#missedAll(), POLL).unref();
      return;
    }
    const own = {
      max: 1,
      onnotify: (_channel: string, payload: string) => this.#receive(payload),
      onclose: () => this.#lost(),
    };
    this.#sql = postgres({ ...this.options, ...own } as DriverOptions);
    this.#ready = this.#listen();
  }

  async #listen(): Promise<void> {
    try {
      await this.#sql!.unsafe(`listen "${this.channel}"`);
    } catch {
      this.#again();
      return;
    }
    this.#listens = true;
    this.#pause = 10;
    this.#missedAll();
  }

  #lost(): void {
    if (this.#listens) this.#again();
  }

  #again(): void {
    this.#listens = false;
    if (this.#closed || this.#retry) return;
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      void this.#listen();
    }, this.#pause).unref();
  }

  #missedAll(): void {
    for (const queue of [...this.#queues.keys()]) this.#missed(queue);
  }

  #missed(queue: string): void {
    this.emit(queue, { type: 'reset' });
    for (const listener of this.#queues.get(queue)?.news ?? []) listener(true);
  }

  #receive(payload: string): void {
    const message = parse(payload);
    if (!message) return;
    const [queue, kind, subject] = message;
    const signal = SIGNALS[kind]?.(subject);
    if (signal) this.emit(queue, signal);
    else if (kind === 'n') for (const listener of this.#queues.get(queue)?.news ?? []) listener(false);
    else this.#missed(queue);
  }
}

/** By the letters of sql/lib/signals.sql. */
const SIGNALS: Record<string, (subject: string) => Signal> = {
  w: () => ({ type: 'work' }),
  f: (id) => ({ type: 'finished', id }),
  c: (token) => ({ type: 'cancelled', token }),
  e: () => ({ type: 'events' }),
};

/** Undefined for a notification that somebody else has sent on our channel. */
function parse(payload: string): [queue: string, kind: string, subject: string] | undefined {
  try {
    const parts: unknown = JSON.parse(payload);
    const ours = Array.isArray(parts) && parts.length === 3 && parts.every((part) => typeof part === 'string');
    return ours ? (parts as [string, string, string]) : undefined;
  } catch {
    return undefined;
  }
}
