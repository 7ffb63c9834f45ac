import type { Client } from '@connectrpc/connect';
import type { Crore } from '../../proto/crore/v1/crore_pb.js';
import type { Signal } from '../store.js';

type Listener = (signal: Signal) => void;

const PAUSE = 200;
const LONGEST_PAUSE = 2_000;

/** A queue with listeners. */
interface Line {
  all: Set<Listener>;
  over: boolean;
  /**
   * Aborts the current stream. Each stream has its own controller, because listeners added to an abort signal stay
   * attached.
   */
  abort?: AbortController;
}

/**
 * One stream per queue with listeners. Whenever a stream restarts, listeners get `reset`: signals may have been missed.
 */
export class Signals {
  readonly #lines = new Map<string, Line>();

  constructor(private readonly client: Client<typeof Crore>) {}

  listen(queue: string, listener: Listener): () => void {
    const line = this.#lines.get(queue) ?? this.#start(queue);
    line.all.add(listener);
    return () => {
      line.all.delete(listener);
      if (line.all.size === 0 && this.#lines.get(queue) === line) this.#stop(queue, line);
    };
  }

  close(): void {
    for (const [queue, line] of this.#lines) this.#stop(queue, line);
  }

  #start(queue: string): Line {
    const line: Line = { all: new Set(), over: false };
    this.#lines.set(queue, line);
    void this.#keep(queue, line);
    return line;
  }

  #stop(queue: string, line: Line): void {
    this.#lines.delete(queue);
    line.over = true;
    line.abort?.abort();
  }

  async #keep(queue: string, line: Line): Promise<void> {
    for (let pause = PAUSE; !line.over; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      try {
        if (await this.#hear(queue, line)) pause = PAUSE;
      } catch {
        // it is retried, and polling covers the gap
      }
      if (!line.over) await new Promise((resolve) => setTimeout(resolve, pause).unref());
    }
  }

  /** Reads until the stream ends; returns whether it had started. */
  async #hear(queue: string, line: Line): Promise<boolean> {
    line.abort = new AbortController();
    const emit = (one: Signal) => {
      for (const listener of line.all) listener(one);
    };
    let begun = false;
    for await (const heard of this.client.subscribe({ queue }, { signal: line.abort.signal })) {
      if (!begun || heard.reset) emit({ type: 'reset' });
      begun = true;
      if (heard.work) emit({ type: 'work' });
      if (heard.events) emit({ type: 'events' });
      for (const id of heard.finished) emit({ type: 'finished', id });
      for (const token of heard.cancelled) emit({ type: 'cancelled', token });
    }
    return begun;
  }
}
