import { EventEmitter } from 'node:events';
import { CroreError } from '../errors.js';
import { EVENT_TYPES, type EventPage, type EventType, type StoredEvent } from '../store/store.js';
import type { Engine } from './engine.js';
import { checkOneOf, checkOptions, describe } from './input/check.js';

/** An event in the life of a job, from any process. */
export interface JobEvent {
  type: EventType;
  queue: string;
  /** Empty for `breaker`, and for a `gap`, which means that events may be missing at this point. */
  id: string;
  at: Date;
  /** Pass it as `after` to continue behind this event. */
  position: string;
  /** Set on `started`. */
  attempt?: number;
  /** Set on `progress`. */
  progress?: unknown;
  /** Set on `retry`, `lost`, `dead` and `cancelled`. */
  error?: string;
  /** Set on `moved`: the queue it moved to. */
  to?: string;
  /** Set on `breaker`. */
  breaker?: 'open' | 'closed';
}

export interface EventOptions {
  /** The position of an earlier event; events since then are delivered first. Default: only new events. */
  after?: string;
  /** Delivers only these types (and `gap`). */
  types?: readonly EventType[];
}

/** Events are recorded for this long after a listener's last renewal, so that it can reconnect without missing any. */
const RECORD = 600_000;
const RENEW = 60_000;
/** Interval of the fallback poll for missed signals, in milliseconds. */
const POLL = 1_000;
const PAGE = 500;

/**
 * The events of a queue's jobs, as an async iterator and as an emitter (`on('done', …)`, `on('event', …)` for all, `on('error',
 * …)`). Nothing is recorded, and nothing costs anything, without a listener.
 */
export class JobEvents extends EventEmitter implements AsyncIterable<JobEvent> {
  #position: string;
  #closed = false;
  #pumping = false;
  /** Counts wake-ups; `#sleep` compares it to detect one it has missed. */
  #stirs = 0;
  readonly #sleepers = new Set<() => void>();
  readonly #types: ReadonlySet<EventType> | undefined;
  readonly #unsubscribe: () => void;
  readonly #renewal: NodeJS.Timeout;

  constructor(
    private readonly engine: Engine,
    private readonly queue: string,
    start: string,
    types: readonly EventType[] | undefined,
    private readonly onClosed: () => void,
  ) {
    super();
    this.#position = start;
    this.#types = types && new Set([...types, 'gap']);
    this.#unsubscribe = engine.store.subscribe(queue, () => this.#stir());
    this.#renewal = setInterval(() => void this.#renew(), RENEW).unref();
    this.on('newListener', (name) => {
      if (name !== 'error' && name !== 'newListener') this.#pump();
    });
  }

  /** The position behind the last delivered event, to continue from. */
  get position(): string {
    return this.#position;
  }

  /** Ends iterators and the emitter. */
  [Symbol.dispose](): void {
    this.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#renewal);
    this.#unsubscribe();
    this.#stir();
    this.onClosed();
  }

  /** Every iterator, and the emitter, keeps its own position from where it starts. */
  [Symbol.asyncIterator](): AsyncGenerator<JobEvent, void, undefined> {
    return this.#walk({ position: this.#position });
  }

  async *#walk(at: { position: string }): AsyncGenerator<JobEvent, void, undefined> {
    while (!this.#closed) {
      const stirs = this.#stirs;
      const page = await this.#next(at.position);
      if (!page) return;
      const { events, gap } = page;
      if (gap && events.length > 0) yield { ...this.#read(events[0]!), type: 'gap', id: '', position: at.position };
      for (const event of events) {
        at.position = event.position;
        if (isLater(event.position, this.#position)) this.#position = event.position;
        if (!this.#types || this.#types.has(event.type)) yield this.#read(event);
        if (this.#closed) return;
      }
      if (events.length === 0) await this.#sleep(stirs);
    }
  }

  /** Reads the events since a position; undefined once closed, even if the connection was lost during the read. */
  async #next(position: string): Promise<EventPage | undefined> {
    try {
      return await this.engine.store.events.read(this.queue, position, PAGE);
    } catch (error) {
      if (this.#closed) return undefined;
      throw error;
    }
  }

  #read({ type, id, at, position, info }: StoredEvent): JobEvent {
    const event: JobEvent = { type, queue: this.queue, id, at: new Date(at), position };
    if (info === '') return event;
    if (type === 'started') return { ...event, attempt: Number(info) };
    if (type === 'progress') return { ...event, progress: JSON.parse(info) as unknown };
    if (type === 'moved') return { ...event, to: info };
    if (type === 'breaker') return { ...event, breaker: info as 'open' | 'closed' };
    return { ...event, error: info };
  }

  /** Delivers events to the listeners from the start position on, continuing after errors of the store and of listeners. */
  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    void (async () => {
      const at = { position: this.#position };
      for (let source = this.#walk(at); !this.#closed; ) {
        try {
          const { value, done } = await source.next();
          if (done) return;
          this.#notify(value.type, value);
          this.#notify('event', value);
        } catch (error) {
          this.#notify('error', error as Error);
          await this.#sleep(this.#stirs);
          source = this.#walk(at);
        }
      }
    })();
  }

  /** An exception in one listener does not affect the others. */
  #notify(name: string, value: JobEvent | Error): void {
    const what = `events of queue '${this.queue}'`;
    if (name === 'error' && this.listenerCount('error') === 0) {
      this.engine.onError(value as Error, what);
      return;
    }
    for (const listener of this.listeners(name)) {
      try {
        listener.call(this, value);
      } catch (error) {
        this.engine.onError(error as Error, `a listener to ${what}`);
      }
    }
  }

  #stir(): void {
    this.#stirs += 1;
    for (const wake of [...this.#sleepers]) wake();
  }

  /** Waits for a wake-up later than `stirs`, or until the poll interval has passed. */
  async #sleep(stirs: number): Promise<void> {
    if (this.#stirs !== stirs || this.#closed) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#sleepers.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, POLL);
      this.#sleepers.add(wake);
    });
  }

  async #renew(): Promise<void> {
    await this.engine.store.events
      .record(this.queue, RECORD)
      .catch((error: Error) => this.engine.onError(error, `events of queue '${this.queue}'`));
  }
}

/** Positions are up to three numbers. Where the third is missing, the position is behind all that have one. */
const POSITION = /^\d{1,20}(-\d{1,20}){0,2}$/;

export function isPosition(text: string): boolean {
  return POSITION.test(text);
}

function isLater(one: string, other: string): boolean {
  const [a, b] = [one, other].map((position) => position.split('-').map(Number)) as [number[], number[]];
  if (a[0] !== b[0]) return a[0]! > b[0]!;
  if ((a[1] ?? 0) !== (b[1] ?? 0)) return (a[1] ?? 0) > (b[1] ?? 0);
  return (a[2] ?? Number.POSITIVE_INFINITY) > (b[2] ?? Number.POSITIVE_INFINITY);
}

/** Turns on event recording for a queue, and follows its events from a position or from now on. */
export async function followEvents(
  engine: Engine,
  queue: string,
  options: EventOptions,
  onClosed: () => void,
): Promise<JobEvents> {
  checkOptions(options, ['after', 'types'], 'events');
  const { after, types } = options;
  if (after !== undefined && !(typeof after === 'string' && isPosition(after)))
    throw new CroreError('BAD_OPTION', `events: after ${describe(after)} is not an event position`);
  if (types !== undefined && !Array.isArray(types))
    throw new CroreError('BAD_OPTION', `events: types must be an array, not ${describe(types)}`);
  for (const type of types ?? []) checkOneOf(type, 'events: types', EVENT_TYPES);
  const last = await engine.store.events.record(queue, RECORD);
  return new JobEvents(engine, queue, after ?? last, types, onClosed);
}
