import { CroreError } from '../errors.js';
import type { LiveProblem, ViewName } from './api.js';
import type { Parameters, View } from './views/views.js';

/** Streams that may be open at once. */
const MOST_STREAMS = 500;
/** A comment is sent after this many milliseconds without a message, so that a broken connection is noticed. */
const KEEPALIVE = 15_000;
/** A reader that takes nothing for this long is disconnected. */
const STUCK = 60_000;
/** Streams end after this long, and pages open them again at once: who may look is asked anew. */
const LONGEST = 300_000;
const RECONNECT = 300;

interface Reader {
  controller: ReadableStreamDefaultController<Uint8Array>;
  openedAt: number;
  sentAt: number;
  readAt: number;
  /** It was too slow for the last message, and gets it when it reads on. */
  isBehind: boolean;
}

/** A view that somebody follows: it is read once for all who follow it. */
interface Followed {
  view: View;
  parameters: Parameters;
  readers: Set<Reader>;
  timer: NodeJS.Timeout | undefined;
  /** The last message, for readers who come later. */
  message: string | undefined;
  /** The content of the last message without its time, which alone is no reason for another. */
  content: string | undefined;
  problem: LiveProblem | undefined;
}

/** Sends views to those who follow them, as server-sent events, whenever their content changes. */
export class LiveViews {
  readonly #followed = new Map<string, Followed>();
  #streams = 0;

  constructor(private readonly now: () => number) {}

  /** A stream of messages; it ends when the reader goes away. */
  follow(name: ViewName, view: View, parameters: Parameters): ReadableStream<Uint8Array> {
    if (this.#streams >= MOST_STREAMS)
      throw new CroreError('QUEUE_FULL', `${MOST_STREAMS} pages are open already: close one`);
    const key = JSON.stringify([name, Object.entries(parameters).sort()]);
    let reader: Reader | undefined;
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#streams += 1;
          const now = performance.now();
          reader = { controller, openedAt: now, sentAt: now, readAt: now, isBehind: false };
          this.#join(key, view, parameters, reader);
        },
        pull: () => {
          if (reader) this.#catchUp(key, reader);
        },
        cancel: () => this.#leave(key, reader!),
      },
      { highWaterMark: 2 },
    );
  }

  close(): void {
    for (const [key, { readers }] of this.#followed) for (const reader of readers) this.#end(key, reader);
  }

  #join(key: string, view: View, parameters: Parameters, reader: Reader): void {
    const known = this.#followed.get(key);
    if (known) {
      known.readers.add(reader);
      if (known.message !== undefined) send(reader, known.message);
      return;
    }
    const readers = new Set([reader]);
    const followed = {
      view,
      parameters,
      readers,
      ...{ timer: undefined, message: undefined, content: undefined, problem: undefined },
    };
    this.#followed.set(key, followed);
    void this.#read(key, followed);
  }

  #catchUp(key: string, reader: Reader): void {
    reader.readAt = performance.now();
    const message = this.#followed.get(key)?.message;
    if (reader.isBehind && message !== undefined) send(reader, message);
  }

  #leave(key: string, reader: Reader): void {
    const followed = this.#followed.get(key);
    if (!followed?.readers.delete(reader)) return;
    this.#streams -= 1;
    if (followed.readers.size > 0) return;
    clearTimeout(followed.timer);
    this.#followed.delete(key);
  }

  #end(key: string, reader: Reader): void {
    this.#leave(key, reader);
    try {
      reader.controller.close();
    } catch {
      // it has been cancelled meanwhile
    }
  }

  async #read(key: string, followed: Followed): Promise<void> {
    try {
      const content = (await followed.view.read(followed.parameters)) ?? null;
      this.#publish(followed, content);
    } catch (error) {
      this.#report(followed, error as Error);
    }
    this.#keepAlive(key, followed);
    if (this.#followed.get(key) !== followed) return;
    followed.timer = setTimeout(() => void this.#read(key, followed), followed.view.every).unref();
  }

  #publish(followed: Followed, content: object | null): void {
    const { now: _now, ...rest } = (content ?? {}) as { now?: number };
    const text = content === null ? 'null' : JSON.stringify(rest);
    if (text === followed.content && !followed.problem) return;
    followed.content = text;
    followed.problem = undefined;
    this.#sendAll(followed, message('content', JSON.stringify(content)));
  }

  #report(followed: Followed, error: Error): void {
    if (followed.problem?.text === error.message) return;
    followed.problem = { text: error.message, since: followed.problem?.since ?? this.now() };
    this.#sendAll(followed, message('problem', JSON.stringify(followed.problem)));
  }

  #sendAll(followed: Followed, text: string): void {
    followed.message = text;
    for (const reader of followed.readers) send(reader, text);
  }

  #keepAlive(key: string, { readers }: Followed): void {
    const now = performance.now();
    for (const reader of [...readers]) {
      const { desiredSize } = reader.controller;
      const isStuck = desiredSize !== null && desiredSize <= 0 && now - reader.readAt > STUCK;
      if (desiredSize === null || isStuck || now - reader.openedAt > LONGEST) this.#end(key, reader);
      else if (now - reader.sentAt > KEEPALIVE) send(reader, ': alive\n\n');
    }
  }
}

function message(event: string, json: string): string {
  return `event: ${event}\ndata: ${json}\nretry: ${RECONNECT}\n\n`;
}

const encoder = new TextEncoder();

/** A reader that has not taken the previous messages gets the latest one when it has. */
function send(reader: Reader, text: string): void {
  const { controller } = reader;
  reader.isBehind = (controller.desiredSize ?? 0) <= 0;
  if (reader.isBehind) return;
  controller.enqueue(encoder.encode(text));
  reader.sentAt = performance.now();
}
