import { Engine } from '../engine/engine.js';
import { CroreError } from '../errors.js';
import type { RawTaskStore } from '../store/raw-store.js';
import { Heartbeat } from '../worker/heartbeat/heartbeat.js';
import { CallBatches } from './call-batches.js';

/** What an open connection provides. */
export interface OpenConnection {
  store: RawTaskStore;
  engine: Engine;
  heartbeat: Heartbeat;
  calls: CallBatches;
}

/** The connection to the store, opened by the first call that needs it; after a failure the next call tries again. */
export class StoreConnection {
  #opening: Promise<OpenConnection> | undefined;
  #connection: OpenConnection | undefined;
  #closed = false;

  constructor(
    private readonly open: () => Promise<RawTaskStore>,
    private readonly timeout: number,
    private readonly onError: (error: Error, what: string) => void,
    /** Called with processes that are known to have ended. */
    private readonly over: (queue: string, tokens: readonly string[]) => void,
  ) {}

  get closed(): boolean {
    return this.#closed;
  }

  connection(): Promise<OpenConnection> {
    if (this.#closed) return Promise.reject(new CroreError('CLOSED', 'this Worqr has been closed'));
    this.#opening ??= this.#open();
    return this.#opening;
  }

  /** The connection, while it is open. */
  get opened(): OpenConnection | undefined {
    return this.#closed ? undefined : this.#connection;
  }

  /** The connection if there is one, without opening it. */
  async current(): Promise<OpenConnection | undefined> {
    return this.#opening?.catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const connection = await this.current();
    await connection?.heartbeat.close();
    await connection?.engine.close();
  }

  async #open(): Promise<OpenConnection> {
    try {
      const store = await this.open();
      for (const warning of store.warnings) warnOnce(warning);
      const engine = new Engine(store, { onError: this.onError });
      const heartbeat = new Heartbeat(store, this.timeout, this.onError);
      this.#connection = { store, engine, heartbeat, calls: new CallBatches(store, this.over) };
      return this.#connection;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }
}

const warned = new Set<string>();

/**
 * A store's configuration concerns its operator, not the application's error handling: warnings are not `error` events.
 */
function warnOnce(warning: string): void {
  if (warned.has(warning)) return;
  warned.add(warning);
  process.emitWarning(warning, 'CroreWarning');
}
