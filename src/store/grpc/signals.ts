import type { Client } from '@connectrpc/connect';
import type { Crore } from '../../proto/crore/v1/crore_pb.js';
import type { Signal } from '../store.js';

type Listener = (signal: Signal) => void;

const PAUSE = 200;
const LONGEST_PAUSE = 2_000;

/** One stream per queue that is listened to. Whenever it begins anew, listeners hear `reset`: something may have been missed. */
export class Signals {
  readonly #listeners = new Map<string, { all: Set<Listener>; abort: AbortController }>();

  constructor(private readonly client: Client<typeof Crore>) {}

  listen(queue: string, listener: Listener): () => void {
    let known = this.#listeners.get(queue);
    if (!known) {
      known = { all: new Set(), abort: new AbortController() };
      this.#listeners.set(queue, known);
      void this.#hear(queue, known.all, known.abort.signal);
    }
    const { all, abort } = known;
    all.add(listener);
    return () => {
      all.delete(listener);
      if (all.size > 0 || this.#listeners.get(queue)?.all !== all) return;
      this.#listeners.delete(queue);
      abort.abort();
    };
  }

  close(): void {
    for (const { abort } of this.#listeners.values()) abort.abort();
    this.#listeners.clear();
  }

  async #hear(queue: string, all: ReadonlySet<Listener>, signal: AbortSignal): Promise<void> {
    const emit = (one: Signal) => {
      for (const listener of all) listener(one);
    };
    let pause = PAUSE;
    while (!signal.aborted) {
      try {
        let first = true;
        for await (const heard of this.client.listen({ queue }, { signal })) {
          if (first || heard.reset) emit({ type: 'reset' });
          first = false;
          pause = PAUSE;
          if (heard.work) emit({ type: 'work' });
          if (heard.events) emit({ type: 'events' });
          for (const id of heard.finished) emit({ type: 'finished', id });
          for (const token of heard.cancelled) emit({ type: 'cancelled', token });
        }
      } catch {
        // it is tried again, and polls stand behind it meanwhile
      }
      if (signal.aborted) return;
      await new Promise((resolve) => setTimeout(resolve, pause).unref());
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }
}
