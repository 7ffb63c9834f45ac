import type { Subscription } from '../../raw-store.js';
import type { Signal } from '../../store.js';
import type { Keys } from '../keys.js';
import { readDelivery } from '../records/entries.js';
import type { Connection } from './connect.js';
import { release } from './node-redis.js';

type Listener = (signal: Signal) => void;
/** Receives a message, or undefined if some may have been missed. */
type MessageListener = (message: Buffer | undefined) => void;

interface Channel {
  /** The queue whose signals it carries, for listeners. */
  queue: string;
  messageListeners: Set<MessageListener>;
  listeners: Set<Listener>;
  ready: Promise<void>;
}

/** The connection for subscriptions: our own, opened for the first listener, or a given one. */
export interface Subscriber {
  open: () => Connection;
  given?: boolean;
}

/**
 * Pub/sub over one connection. After a reconnect, every listener is notified that messages may have been missed,
 * because Redis does not keep what was published in between.
 */
export class Signals {
  readonly #channels = new Map<string, Channel>();
  #connection: Connection | undefined;
  /** The channel for deliveries to this process, and whether it is subscribed to now. */
  readonly #deliveries: string;
  #isDelivering = false;
  #probe: NodeJS.Timeout | undefined;

  constructor(
    private readonly subscriber: Subscriber,
    keys: Keys,
    /** How long the server has to answer, in milliseconds. */
    private readonly timeout: number,
    /** Of signals that need not come back, because `nudge` has told the listeners here; empty if all have to. */
    readonly origin = '',
  ) {
    this.#deliveries = origin === '' || subscriber.given ? '' : keys.deliveries(origin);
  }

  /** The channel on which this process gets what is leased to its waiting workers; empty if it would not arrive. */
  get deliveryChannel(): string {
    return this.#isDelivering ? this.#deliveries : '';
  }

  listen(queue: string, name: string, listener: Listener): () => void {
    const channel = this.#channel(name);
    channel.queue = queue;
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
    clearInterval(this.#probe);
    this.#isDelivering = false;
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
    const channel: Channel = { queue: '', messageListeners: new Set(), listeners: new Set(), ready: Promise.resolve() };
    this.#channels.set(name, channel);
    channel.ready = this.#subscribe(this.#connect(), name);
    return channel;
  }

  #release(name: string, channel: Channel): void {
    if (channel.listeners.size + channel.messageListeners.size > 0 || this.#channels.get(name) !== channel) return;
    this.#channels.delete(name);
    this.#connection?.unsubscribe(name).catch(() => {});
  }

  #connect(): Connection {
    if (this.#connection) return this.#connection;
    const connection = this.subscriber.open();
    this.#connection = connection;
    connection.on('error', this.#ignore).on('messageBuffer', this.#receive).on('ready', this.#again);
    if (this.#deliveries !== '') {
      connection.on('close', this.#stopDeliveries);
      this.#startDeliveries(connection);
      this.#probe = setInterval(() => this.#prove(connection), 2 * this.timeout).unref();
    }
    return connection;
  }

  #startDeliveries(connection: Connection): void {
    connection.subscribe(this.#deliveries).then(
      () => {
        this.#isDelivering = true;
      },
      () => {},
    );
  }

  readonly #stopDeliveries = (): void => {
    this.#isDelivering = false;
  };

  /** A connection may be dead without either side knowing it: what is sent to it is then leased to a worker that does not know of it. A new one makes workers compare. */
  #prove(connection: Connection): void {
    if (this.#isDelivering) connection.ping?.().catch(() => connection.disconnect(true));
  }

  readonly #ignore = (): void => {};

  readonly #receive = (name: Buffer, message: Buffer): void => {
    const channel = name.toString();
    if (channel === this.#deliveries) this.#deliver(message);
    else this.#emit(channel, message);
  };

  /** A message that cannot be read counts as missed: workers compare what they hold. */
  #deliver(message: Buffer): void {
    try {
      this.#deliverTo(message);
    } catch {
      for (const name of this.#channels.keys()) this.#emit(name, undefined);
    }
  }

  /** To all listeners of the queue: those that do not work for this worker ignore it. */
  #deliverTo(message: Buffer): void {
    const { channel: name, worker, entries } = readDelivery(message);
    const channel = this.#channels.get(name);
    if (!channel) return;
    const signal: Signal = { type: 'delivered', worker, entries: () => entries(channel.queue) };
    for (const listener of channel.listeners) listener(signal);
  }

  readonly #again = (): void => {
    if (this.#deliveries !== '') this.#startDeliveries(this.#connection!);
    for (const name of this.#channels.keys()) void this.#subscribe(this.#connection!, name);
  };

  /** A listener may have claimed before the subscription was active: notifies it to check again once it is. */
  #subscribe(connection: Connection, name: string): Promise<void> {
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
