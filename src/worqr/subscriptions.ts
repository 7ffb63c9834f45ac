import type { TaskEvent, TaskTopic } from '../store/raw-store.js';
import type { StoreConnection } from './store-connection.js';

const RETRY = 1_000;

interface Open {
  ready: Promise<void>;
  standing: boolean;
  stop: () => void;
}

/** Subscribes to the queues that this instance needs events of. */
export class Subscriptions {
  readonly #open = new Map<string, Open>();

  constructor(
    private readonly about: TaskTopic,
    private readonly link: StoreConnection,
    private readonly timeout: number,
    private readonly hear: (queue: string, event: TaskEvent) => void,
    /** Whether a queue still needs a subscription. */
    private readonly wanted: (queue: string) => boolean,
  ) {}

  /** Resolves once no further event can be missed; never rejects, and never waits longer than a call may take. */
  open(queue: string): Promise<void> {
    const known = this.#open.get(queue);
    if (known) return known.standing ? DONE : known.ready;
    const subscription: Open = { ready: DONE, standing: false, stop: () => {} };
    this.#open.set(queue, subscription);
    subscription.ready = this.#start(queue, subscription);
    return subscription.ready;
  }

  /** Resolves when a pending subscription is active. */
  settled(queue: string): Promise<void> | undefined {
    const known = this.#open.get(queue);
    return known && !known.standing ? known.ready : undefined;
  }

  close(queue: string): void {
    this.#open.get(queue)?.stop();
    this.#open.delete(queue);
  }

  closeAll(): void {
    for (const queue of [...this.#open.keys()]) this.close(queue);
  }

  async #start(queue: string, subscription: Open): Promise<void> {
    try {
      const { store } = await this.link.connection();
      if (this.#open.get(queue) !== subscription) return;
      const { ready, stop } = store.raw.subscribe(queue, this.about, (event) => this.hear(queue, event));
      subscription.stop = stop;
      await within(ready, this.timeout);
      subscription.standing = true;
    } catch {
      // Callers see from their own calls that the store is unreachable; listeners are subscribed when it is back.
      if (this.#open.get(queue) === subscription) this.#open.delete(queue);
      if (this.link.closed) return;
      setTimeout(() => {
        if (this.wanted(queue) && !this.link.closed) void this.open(queue);
      }, RETRY).unref();
    }
  }
}

const DONE = Promise.resolve();

function within(promise: Promise<void>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void promise.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
