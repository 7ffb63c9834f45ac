import { EventEmitter } from 'node:events';
import type { Arg, Reply } from './client.js';

/** The part we use of a client of `redis` (node-redis), version 4 or newer. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  connect(): Promise<unknown>;
  duplicate(): NodeRedisClient;
  sendCommand(args: Arg[], options: object): Promise<unknown>;
  subscribe(channel: string, listener: Listener, bufferMode: true): Promise<void>;
  unsubscribe(channel: string, listener: Listener, bufferMode: true): Promise<void>;
  on(event: string, listener: (...args: never[]) => void): unknown;
  off(event: string, listener: (...args: never[]) => void): unknown;
  /** Version 5 and newer. */
  destroy?(): void;
  disconnect?(): Promise<void>;
}

type Listener = (message: Buffer, channel: Buffer) => void;

/**
 * Requests replies as buffers and flat lists: version 4 knows the first option, later versions the second, which is
 * keyed by the first byte of each type in the protocol: '$' text, '+' status, '%' map, '~' set, ',' double.
 */
const AS_BUFFERS = { returnBuffers: true, typeMapping: { 36: Buffer, 43: Buffer, 37: Array, 126: Array, 44: String } };

export function isNodeRedis(client: unknown): client is NodeRedisClient {
  const { isOpen, isReady, sendCommand, subscribe, duplicate } = (client ?? {}) as Record<string, unknown>;
  return (
    typeof isOpen === 'boolean' &&
    typeof isReady === 'boolean' &&
    [sendCommand, subscribe, duplicate].every((one) => typeof one === 'function')
  );
}

/** Detaches from a given client, if it is one of node-redis. */
export function release(connection: unknown): void {
  if (connection instanceof NodeRedisConnection) connection.release();
}

/** Adapts a node-redis client to the few calls and events of ioredis that a store uses. */
export class NodeRedisConnection extends EventEmitter {
  readonly #subscribed = new Map<string, Listener>();
  #connecting: Promise<unknown> | undefined;

  constructor(private readonly client: NodeRedisClient) {
    super();
    client.on('error', this.#failed as never);
    client.on('ready', this.#ready);
    client.on('reconnecting', this.#closed);
    client.on('end', this.#closed);
  }

  get status(): string {
    if (this.client.isReady) return 'ready';
    return this.client.isOpen ? 'connecting' : 'wait';
  }

  connect(): Promise<unknown> {
    if (this.client.isOpen) return Promise.resolve();
    this.#connecting ??= this.client.connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  disconnect(): void {
    this.release();
    this.client.on('error', () => {}); // without a listener, a last error would end the process
    try {
      if (this.client.destroy) this.client.destroy();
      else void this.client.disconnect?.().catch(() => {});
    } catch {
      // it was already closed
    }
  }

  /** Removes our listeners from a client that its owner keeps. */
  release(): void {
    this.client.off('error', this.#failed as never);
    this.client.off('ready', this.#ready);
    this.client.off('reconnecting', this.#closed);
    this.client.off('end', this.#closed);
  }

  duplicate(): NodeRedisConnection {
    return new NodeRedisConnection(this.client.duplicate());
  }

  callBuffer(command: string, args: Arg[]): Promise<Reply> {
    return this.client.sendCommand([command, ...args], AS_BUFFERS) as Promise<Reply>;
  }

  /** The library resubscribes by itself after a reconnect. */
  async subscribe(channel: string): Promise<void> {
    if (this.#subscribed.has(channel)) return;
    const listener: Listener = (message, name) => void this.emit('messageBuffer', name, message);
    this.#subscribed.set(channel, listener);
    try {
      await this.connect();
      await this.client.subscribe(channel, listener, true);
    } catch (error) {
      this.#subscribed.delete(channel);
      throw error;
    }
  }

  async unsubscribe(channel: string): Promise<void> {
    const listener = this.#subscribed.get(channel);
    if (!listener) return;
    this.#subscribed.delete(channel);
    await this.client.unsubscribe(channel, listener, true);
  }

  readonly #failed = (error: Error): void => void (this.listenerCount('error') > 0 && this.emit('error', error));
  readonly #ready = (): void => void this.emit('ready');
  readonly #closed = (): void => void this.emit('close');
}
