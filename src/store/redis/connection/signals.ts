import type { Cluster, Redis } from 'ioredis';
import type { Subscription } from '../../raw-store.js';
import type { Signal } from '../../store.js';
import { release } from './node-redis.js';

type Listener = (signal: Signal) => void;
/** A message, or undefined when some may have been missed. */
type Hearer = (message: Buffer | undefined) => void;

interface Channel {
  hearers: Set<Hearer>;
  listeners: Set<Listener>;
  ready: Promise<void>;
}

/** Where messages come from: a connection of ours, opened when somebody first listens, or one that was given. */
export interface Subscriber {
  open: () => Redis | Cluster;
  given?: boolean;
}

/**
 * The pub/sub side: one connection. After a reconnect everybody hears that something may have been missed, for whatever was
 * published meanwhile is gone.
 */
export class Signals {
  readonly #channels = new Map<string, Channel>();
  #connection: Redis | Cluster | undefined;

  constructor(private readonly subscriber: Subscriber) {}

  listen(name: string, listener: Listener): () => void {
    const channel = this.#channel(name);
    channel.listeners.add(listener);
    return () => {
      channel.listeners.delete(listener);
      this.#release(name, channel);
    };
  }

  /** The messages themselves, whatever they hold. */
  hear(name: string, hearer: Hearer): Subscription {
    const channel = this.#channel(name);
    channel.hearers.add(hearer);
    const stop = () => {
      channel.hearers.delete(hearer);
      this.#release(name, channel);
    };
    return { ready: channel.ready, stop };
  }

  /** Tells listeners of this process of work that is on its way: their claim follows it on the same connection. */
  nudge(name: string): void {
    for (const listener of this.#channels.get(name)?.listeners ?? []) listener({ type: 'work' });
  }

  close(): void {
    const connection = this.#connection;
    if (connection && this.subscriber.given) {
      for (const name of this.#channels.keys()) connection.unsubscribe(name).catch(() => {});
      connection.off('error', this.#ignore).off('messageBuffer', this.#receive).off('ready', this.#again);
      release(connection);
    } else {
      connection?.disconnect();
    }
    this.#channels.clear();
  }

  #channel(name: string): Channel {
    const known = this.#channels.get(name);
    if (known) return known;
    const channel: Channel = { hearers: new Set(), listeners: new Set(), ready: Promise.resolve() };
    this.#channels.set(name, channel);
    channel.ready = this.#subscribe(this.#connect(), name);
    return channel;
  }

  #release(name: string, channel: Channel): void {
    if (channel.listeners.size + channel.hearers.size > 0 || this.#channels.get(name) !== channel) return;
    this.#channels.delete(name);
    this.#connection?.unsubscribe(name).catch(() => {});
  }

  #connect(): Redis | Cluster {
    if (this.#connection) return this.#connection;
    const connection = this.subscriber.open();
    this.#connection = connection;
    connection.on('error', this.#ignore).on('messageBuffer', this.#receive).on('ready', this.#again);
    return connection;
  }

  readonly #ignore = (): void => {};

  readonly #receive = (name: Buffer, message: Buffer): void => this.#emit(name.toString(), message);

  readonly #again = (): void => {
    for (const name of this.#channels.keys()) void this.#subscribe(this.#connection!, name);
  };

  /** A listener may have claimed before the subscription stood: it is told to look again once it does. */
  #subscribe(connection: Redis | Cluster, name: string): Promise<void> {
    const tell = () => this.#emit(name, undefined);
    return connection.subscribe(name).then(tell, () => {});
  }

  #emit(name: string, message: Buffer | undefined): void {
    const channel = this.#channels.get(name);
    if (!channel) return;
    for (const hearer of channel.hearers) hearer(message);
    if (channel.listeners.size === 0) return;
    const signal = read(message);
    for (const listener of channel.listeners) listener(signal);
  }
}

/** One letter, then what it is about. */
function read(message: Buffer | undefined): Signal {
  const text = message?.toString() ?? '';
  const rest = text.slice(1);
  switch (text[0]) {
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
