import { Engine } from '../engine/engine.js';
import { CroreError } from '../errors.js';
import type { RawTaskStore } from '../store/raw-store.js';
import { Heartbeat } from '../worker/heartbeat.js';
import { CallBatches } from './call-batches.js';

/** What an open connection offers. */
export interface OpenConnection {
  store: RawTaskStore;
  engine: Engine;
  heartbeat: Heartbeat;
  calls: CallBatches;
}

/** The way to the store, opened at the first call that needs it; one that failed is tried again by the next call. */
export class StoreConnection {
  #opening: Promise<OpenConnection> | undefined;
  #connection: OpenConnection | undefined;
  #closed = false;

  constructor(
    private readonly open: () => Promise<RawTaskStore>,
    private readonly timeout: number,
    private readonly onError: (error: Error, what: string) => void,
    /** Told of processes that are known to be over. */
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

  /** The connection, once it is open and until it is closed. */
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

/** How a store is set up concerns its operator, not the error handling of an application: it is no `error` event. */
function warnOnce(warning: string): void {
  if (warned.has(warning)) return;
  warned.add(warning);
  process.emitWarning(warning, 'CroreWarning');
}
