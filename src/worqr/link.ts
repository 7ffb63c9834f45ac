import { Engine } from '../engine/engine.js';
import { CroreError } from '../errors.js';
import type { HandStore } from '../store/raw.js';
import { Heart } from '../worker/heart.js';
import { Calls } from './calls.js';

/** What an open connection offers. */
export interface Desk {
  store: HandStore;
  engine: Engine;
  heart: Heart;
  calls: Calls;
}

/** The way to the store, opened at the first call that needs it; one that failed is tried again by the next call. */
export class Link {
  #opening: Promise<Desk> | undefined;
  #desk: Desk | undefined;
  #closed = false;

  constructor(
    private readonly open: () => Promise<HandStore>,
    private readonly timeout: number,
    private readonly onError: (error: Error, what: string) => void,
    /** Told of processes that are known to be over. */
    private readonly over: (queue: string, tokens: readonly string[]) => void,
  ) {}

  get closed(): boolean {
    return this.#closed;
  }

  desk(): Promise<Desk> {
    if (this.#closed) return Promise.reject(new CroreError('CLOSED', 'this Worqr has been closed'));
    this.#opening ??= this.#open();
    return this.#opening;
  }

  /** The desk, once it is open and until it is closed. */
  get opened(): Desk | undefined {
    return this.#closed ? undefined : this.#desk;
  }

  /** The desk if there is one, without opening it. */
  async current(): Promise<Desk | undefined> {
    return this.#opening?.catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const desk = await this.current();
    await desk?.heart.close();
    await desk?.engine.close();
  }

  async #open(): Promise<Desk> {
    try {
      const store = await this.open();
      for (const warning of store.warnings) warnOnce(warning);
      const engine = new Engine(store, { onError: this.onError });
      const heart = new Heart(store, this.timeout, this.onError);
      this.#desk = { store, engine, heart, calls: new Calls(store, this.over) };
      return this.#desk;
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
