import type { Cluster, Redis } from 'ioredis';
import type { Subscription } from '../../raw-store.js';
import type { Signal } from '../../store.js';
import { release } from './node-redis.js';

type Listener = (signal: Signal) => void;
/** Receives a message, or undefined if some may have been missed. */
type MessageListener = (message: Buffer | undefined) => void;

interface Channel {
  messageListeners: Set<MessageListener>;
  listeners: Set<Listener>;
  ready: Promise<void>;
}

/** The connection for subscriptions: our own, opened for the first listener, or a given one. */
export interface Subscriber {
  open: () => Redis | Cluster;
  given?: boolean;
}

/**
 * Pub/sub over one connection. After a reconnect, every listener is notified that messages may have been missed,
 * because Redis does not keep what was published in between.
 */
export class Signals {
  readonly #channels = new Map<string, Channel>();
  #connection: Redis | Cluster | undefined;

  constructor(
    private readonly subscriber: Subscriber,
    /** Of signals that need not come back, because `nudge` has told the listeners here; empty if all have to. */
    readonly origin = '',
  ) {}

  listen(name: string, listener: Listener): () => void {
    const channel = this.#channel(name);
    channel.listeners.add(listener);
    return () => {
      channel.listeners.delete(listener);
      this.#release(name, channel);
    };
  }

  /** Delivers the raw messages, whatever their content. */
  subscribe(name: string, messageListener: MessageListener): Subscription {
    const channel = this.#channel(name);
    channel.messageListeners.add(messageListener);
    const stop = () => {
      channel.messageListeners.delete(messageListener);
      this.#release(name, channel);
    };
    return { ready: channel.ready, stop };
  }

  /** Notifies listeners in this process of work being added: their claim follows it on the same connection. */
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
    const channel: Channel = { messageListeners: new Set(), listeners: new Set(), ready: Promise.resolve() };
    this.#channels.set(name, channel);
    channel.ready = this.#subscribe(this.#connect(), name);
    return channel;
  }

  #release(name: string, channel: Channel): void {
    if (channel.listeners.size + channel.messageListeners.size > 0 || this.#channels.get(name) !== channel) return;
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

  /** A listener may have claimed before the subscription was active: notifies it to check again once it is. */
  #subscribe(connection: Redis | Cluster, name: string): Promise<void> {
    const notify = () => this.#emit(name, undefined);
    return connection.subscribe(name).then(notify, () => {});
  }

  #isOwn(message: Buffer | undefined): boolean {
    return (
      this.origin !== '' && message !== undefined && message.length > 1 && message.toString() === `w${this.origin}`
    );
  }

  #emit(name: string, message: Buffer | undefined): void {
    const channel = this.#channels.get(name);
    if (!channel) return;
    for (const messageListener of channel.messageListeners) messageListener(message);
    if (channel.listeners.size === 0 || this.#isOwn(message)) return;
    const signal = read(message);
    for (const listener of channel.listeners) listener(signal);
  }
}

/** A message is one letter, then its subject; for work, who has told its own workers already. */
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
