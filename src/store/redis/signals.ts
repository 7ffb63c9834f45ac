import type { Cluster, Redis } from 'ioredis';
import type { Signal } from '../store.js';

type Listener = (signal: Signal) => void;

/**
 * The pub/sub side: one connection, opened when somebody first listens. After a reconnect every listener hears `reset`,
 * for whatever was published meanwhile is gone.
 */
export class Signals {
  readonly #listeners = new Map<string, Set<Listener>>();
  #connection: Redis | Cluster | undefined;

  constructor(private readonly open: () => Redis | Cluster) {}

  listen(channel: string, listener: Listener): () => void {
    const connection = this.#connect();
    let set = this.#listeners.get(channel);
    if (!set) {
      set = new Set();
      this.#listeners.set(channel, set);
      this.#subscribe(connection, channel);
    }
    set.add(listener);
    return () => {
      set.delete(listener);
      if (set.size > 0 || this.#listeners.get(channel) !== set) return;
      this.#listeners.delete(channel);
      connection.unsubscribe(channel).catch(() => {});
    };
  }

  /** Tells listeners of this process of work that is on its way: their claim follows it on the same connection. */
  nudge(channel: string): void {
    this.#emit(channel, { type: 'work' });
  }

  close(): void {
    this.#listeners.clear();
    this.#connection?.disconnect();
  }

  #connect(): Redis | Cluster {
    if (this.#connection) return this.#connection;
    const connection = this.open();
    this.#connection = connection;
    connection.on('error', () => {});
    connection.on('message', (channel: string, message: string) => this.#emit(channel, read(message)));
    connection.on('ready', () => {
      for (const channel of this.#listeners.keys()) this.#subscribe(connection, channel);
    });
    return connection;
  }

  /** A listener may have claimed before the subscription stood: it is told to look again once it does. */
  #subscribe(connection: Redis | Cluster, channel: string): void {
    const tell = () => this.#emit(channel, { type: 'reset' });
    connection.subscribe(channel).then(tell, () => {});
  }

  #emit(channel: string, signal: Signal): void {
    for (const listener of this.#listeners.get(channel) ?? []) listener(signal);
  }
}

/** One letter, then what it is about. */
function read(message: string): Signal {
  const rest = message.slice(1);
  switch (message[0]) {
    case 'w':
      return { type: 'work' };
    case 'f':
      return { type: 'finished', id: rest };
    case 'e':
      return { type: 'events' };
    case 'c':
      return { type: 'cancelled', token: rest };
    default:
      return { type: 'reset' };
  }
}
