import type { RedisClient, Reply } from './client.js';
import type { Connection } from './connect.js';
import { ConnectionLost } from './connection-lost.js';
import { SocketConnection } from './socket-connection.js';

/** Where the server publishes which of the remembered keys have been written. */
const CHANNEL = '__redis__:invalidate';
/** A key is read again after this long, in milliseconds, in case a message was lost. */
const BELIEVED = 30_000;
/** Until the server is asked again after it has refused, in milliseconds. */
const REFUSED = 300_000;
const MOST_KEYS = 20_000;

interface WatchedKey {
  until: number;
  written: () => void;
}

/**
 * Knows which keys nobody has written since they were read: the server remembers them for our data connection and publishes once, on our connection for signals, when
 * one is written (client-side caching with redirection). Only for our own connections to a single server; elsewhere, and where the server or the account does not
 * permit it, no key is ever watched, and callers read as often as they would without it. A proxy may permit it and send nothing, so a message has to
 * arrive first.
 *
 *    either connection is new ──▶ unproven ── the key of `prove` was written, and the message arrived ──▶ proven
 */
export class KeyWatch {
  readonly #watched = new Map<string, WatchedKey>();
  /** The id of the connection for signals at the server, while it is subscribed. */
  #subscriber: string | undefined;
  /** Counts losses of that connection: what was asked before is void. */
  #losses = 0;
  #isProven = false;
  #proof = '';
  #provingUntil = 0;

  constructor(private readonly client: RedisClient) {
    client.redis.on('close', this.#forget);
  }

  get isProven(): boolean {
    return this.#isProven;
  }

  /** Uses this connection for signals. */
  follow(connection: Connection): Connection {
    if (!(connection instanceof SocketConnection) || !(this.client.redis instanceof SocketConnection))
      return connection;
    connection.on('ready', () => void this.#subscribe(connection).catch(() => {}));
    connection.on('written', this.#receive).on('close', this.#lose);
    return connection;
  }

  /** Starts, if there is no proof yet that messages arrive, with a key that is written every few seconds anyway. */
  prove(key: string): void {
    const now = performance.now();
    if (this.#isProven || this.#subscriber === undefined || now < this.#provingUntil) return;
    this.#proof = key;
    this.#provingUntil = now + BELIEVED;
    this.#remember([key], ['CLIENT', 'TRACKING', 'ON', 'REDIRECT', this.#subscriber, 'OPTIN']).catch((error) => {
      this.#provingUntil = error instanceof ConnectionLost ? 0 : now + REFUSED;
    });
  }

  /** Watches keys that the caller reads with its next call. `written` is called once for each, when it was written. */
  watch(keys: readonly string[], written: () => void): void {
    if (!this.#isProven) return;
    if (this.#watched.size + keys.length > MOST_KEYS) this.#watched.clear();
    const entry = { until: performance.now() + BELIEVED, written };
    // Before the reply: a message that the server sends after it may arrive first.
    for (const key of keys) this.#watched.set(key, entry);
    this.#remember(keys).catch(() => {
      for (const key of keys) if (this.#watched.get(key) === entry) this.#watched.delete(key);
    });
  }

  /** Nobody has written it since it was read, as far as is known. */
  isUnwritten(key: string): boolean {
    return (this.#watched.get(key)?.until ?? 0) > performance.now();
  }

  close(): void {
    this.client.redis.off('close', this.#forget);
    this.#forget();
  }

  /** The server remembers the keys of the command that follows CACHING. */
  #remember(keys: readonly string[], ...before: string[][]): Promise<Reply[]> {
    return this.client.inOneGo([...before, ['CLIENT', 'CACHING', 'YES'], ['EXISTS', ...keys]]);
  }

  async #subscribe(connection: SocketConnection): Promise<void> {
    const losses = this.#losses;
    // The id first: a connection with subscriptions takes no other commands.
    const [id] = await Promise.all([connection.callBuffer('CLIENT', ['ID']), connection.subscribe(CHANNEL)]);
    if (losses === this.#losses) this.#subscriber = String(id);
  }

  readonly #lose = (): void => {
    this.#losses += 1;
    this.#subscriber = undefined;
    this.#forget();
  };

  readonly #forget = (): void => {
    this.#watched.clear();
    this.#isProven = false;
    this.#proof = '';
    this.#provingUntil = 0;
  };

  /** `keys` is null after all keys were deleted. */
  readonly #receive = (keys: Reply): void => {
    if (!Array.isArray(keys)) this.#watched.clear();
    else for (const key of keys) this.#note(String(key));
  };

  #note(key: string): void {
    if (key === this.#proof) this.#isProven = true;
    const watched = this.#watched.get(key);
    this.#watched.delete(key);
    watched?.written();
  }
}
