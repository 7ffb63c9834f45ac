import { EventEmitter } from 'node:events';
import { CroreError } from '../errors.js';
import { EVENT_TYPES, type EventPage, type EventType, type StoredEvent } from '../store/store.js';
import { checkOneOf, checkOptions, describe } from './check.js';
import type { Engine } from './engine.js';

/** Something that happened to a job, in any process. */
export interface JobEvent {
  type: EventType;
  queue: string;
  /** Empty for a `gap`: something may be missing here. */
  id: string;
  at: Date;
  /** Give it as `after` to go on behind this event. */
  position: string;
  /** Of `started`. */
  attempt?: number;
  /** Of `progress`. */
  progress?: unknown;
  /** Of `retry`, `lost`, `dead` and `cancelled`. */
  error?: string;
}

export interface EventOptions {
  /** A position from an earlier event: what happened since comes first. Default: from now on. */
  after?: string;
  /** Only these types (and `gap`). */
  types?: readonly EventType[];
}

/** Events are recorded for this long after a listener was last heard of, so that it can come back and miss nothing. */
const RECORD = 600_000;
const RENEW = 60_000;
/** A slow look behind the signals, in milliseconds. */
const POLL = 1_000;
const PAGE = 500;

/**
 * What happens to the jobs of a queue, as an async iterator and as an emitter (`on('done', …)`, `on('event', …)` for all,
 * `on('error', …)`). Nothing is recorded, and nothing paid, unless somebody listens.
 */
export class JobEvents extends EventEmitter implements AsyncIterable<JobEvent> {
  #position: string;
  #closed = false;
  #pumping = false;
  #stirred = false;
  #wake: (() => void) | undefined;
  readonly #types: ReadonlySet<EventType> | undefined;
  readonly #unlisten: () => void;
  readonly #renewal: NodeJS.Timeout;

  constructor(
    private readonly engine: Engine,
    private readonly queue: string,
    position: string,
    types: readonly EventType[] | undefined,
    private readonly onClosed: () => void,
  ) {
    super();
    this.#position = position;
    this.#types = types && new Set([...types, 'gap']);
    this.#unlisten = engine.store.listen(queue, () => this.#stir());
    this.#renewal = setInterval(() => void this.#renew(), RENEW).unref();
    this.on('newListener', (name) => {
      if (name !== 'error' && name !== 'newListener') this.#pump();
    });
  }

  /** Where one would go on. */
  get position(): string {
    return this.#position;
  }

  /** Ends iterators and the emitter. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#renewal);
    this.#unlisten();
    this.#stir();
    this.onClosed();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<JobEvent, void, undefined> {
    while (!this.#closed) {
      this.#stirred = false;
      const page = await this.#next();
      if (!page) return;
      const { events, gap } = page;
      if (gap && events.length > 0) yield { ...this.#read(events[0]!), type: 'gap', id: '', position: this.#position };
      for (const event of events) {
        this.#position = event.position;
        if (!this.#types || this.#types.has(event.type)) yield this.#read(event);
        if (this.#closed) return;
      }
      if (events.length === 0) await this.#sleep();
    }
  }

  /** What happened since; nothing once closed, also when the connection went away under the question. */
  async #next(): Promise<EventPage | undefined> {
    try {
      return await this.engine.store.events(this.queue, this.#position, PAGE);
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
    return { ...event, error: info };
  }

  /** Feeds the listeners, as long as there are any. */
  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    void (async () => {
      while (!this.#closed) {
        try {
          for await (const event of this) {
            this.emit(event.type, event);
            this.emit('event', event);
          }
        } catch (error) {
          if (this.listenerCount('error') > 0) this.emit('error', error);
          else this.engine.onError(error as Error, `events of queue '${this.queue}'`);
          await this.#sleep();
        }
      }
    })();
  }

  #stir(): void {
    this.#stirred = true;
    this.#wake?.();
  }

  async #sleep(): Promise<void> {
    if (this.#stirred || this.#closed) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      timer = setTimeout(resolve, POLL);
    });
    clearTimeout(timer);
    this.#wake = undefined;
  }

  async #renew(): Promise<void> {
    await this.engine.store
      .record(this.queue, RECORD)
      .catch((error: Error) => this.engine.onError(error, `events of queue '${this.queue}'`));
  }
}

/** Has a queue recorded, and follows it from a position or from now on. */
export async function followEvents(
  engine: Engine,
  queue: string,
  options: EventOptions,
  onClosed: () => void,
): Promise<JobEvents> {
  checkOptions(options, ['after', 'types'], 'events');
  const { after, types } = options;
  if (after !== undefined && !(typeof after === 'string' && /^\d{1,20}(-\d{1,20})?$/.test(after)))
    throw new CroreError('BAD_OPTION', `events: after ${describe(after)} is not a position of an event`);
  if (types !== undefined && !Array.isArray(types))
    throw new CroreError('BAD_OPTION', `events: types must be an array, not ${describe(types)}`);
  for (const type of types ?? []) checkOneOf(type, 'events: types', EVENT_TYPES);
  const last = await engine.store.record(queue, RECORD);
  return new JobEvents(engine, queue, after ?? last, types, onClosed);
}
