import { type Crore, engineOf } from '../crore.js';
import { checkInteger, checkOptions } from '../engine/input/check.js';
import { CroreError } from '../errors.js';
import { type Duration, milliseconds } from '../job/duration.js';
import type { Connection } from '../store/sqlite/file/external-connection.js';
import { MAX_BATCH, type Store } from '../store/store.js';
import { checkFunction, harmless } from '../worker/options.js';
import { type Batch, OCCUPIED, type OutboxSource } from './source.js';
import { prepareLedger } from './sqlite/outbox.js';

export interface RelayOptions {
  /** Jobs sent per batch; default 500, at most 1000. */
  batch?: number;
  /** Poll interval when there are no file events or notifications; default 1 s. */
  every?: Duration;
  /** Called with errors; the relay keeps trying. Default: that of the connection. */
  onError?: (error: Error, what: string) => void;
}

const MAX_BYTES = 4 * 1024 * 1024;
/** Delay before another look at a connection inside a transaction, or a locked file. */
const OCCUPIED_PAUSE = 10;
const OCCUPIED_LONG = 10_000;
const FIRST_PAUSE = 200;
const LONGEST_PAUSE = 10_000;

/**
 * Sends the outbox of a file to the store of `crore`, each job exactly once and in order per queue, until closed.
 * Several relays may serve one file. Give it a connection of its own: on one shared with the application it must wait
 * for the end of every transaction.
 */
export function relay(connection: Connection, crore: Crore, options?: RelayOptions): Relay;
/** The same for the outbox in a schema on PostgreSQL, over connections of its own. */
export function relay(url: string, crore: Crore, options?: RelayOptions): Promise<Relay>;
export function relay(place: Connection | string, crore: Crore, options: RelayOptions = {}): Relay | Promise<Relay> {
  checkOptions(options, ['batch', 'every', 'onError'], 'relay');
  const engine = engineOf(crore);
  const setup = {
    rows: options.batch === undefined ? 500 : checkInteger(options.batch, 'batch', 1, MAX_BATCH),
    every: options.every === undefined ? 1_000 : Math.max(1, milliseconds(options.every, 'every')),
    onError: harmless(checkFunction(options.onError, 'onError')) ?? engine.onError,
  };
  if (typeof place === 'string') return openSource(place).then((source) => new Relay(source, engine.store, setup));
  return new Relay(prepareLedger(place, 'relay'), engine.store, setup);
}

async function openSource(url: string): Promise<OutboxSource> {
  const { openPostgresSource } = await import('./postgres/source.js');
  return openPostgresSource(url);
}

interface RelaySetup {
  rows: number;
  every: number;
  onError: (error: Error, what: string) => void;
}

export class Relay {
  readonly #unwatch: () => void;
  readonly #running: Promise<void>;
  #closed = false;
  /** The outbox may have changed since the last check. */
  #stirred = true;
  #wake: (() => void) | undefined;
  #occupiedSince: number | undefined;
  readonly #empty = new Set<() => void>();

  constructor(
    private readonly source: OutboxSource,
    private readonly store: Store,
    private readonly setup: RelaySetup,
  ) {
    this.#unwatch = source.watch(() => this.#stir());
    this.#running = this.#run();
  }

  /** Resolves once the outbox has been seen empty; rejects with TIMEOUT, or CLOSED. */
  drained({ timeout = '30s' }: { timeout?: Duration } = {}): Promise<void> {
    const ms = milliseconds(timeout, 'timeout');
    return new Promise((resolve, reject) => {
      const finish = () => {
        clearTimeout(timer);
        this.#empty.delete(finish);
        if (this.#closed) reject(new CroreError('CLOSED', 'the relay was closed'));
        else resolve();
      };
      const timer = setTimeout(() => {
        this.#empty.delete(finish);
        reject(new CroreError('TIMEOUT', `the outbox did not become empty within ${ms} ms`));
      }, ms);
      this.#empty.add(finish);
      if (this.#closed) finish();
      else this.#stir();
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Stops after the current batch; the next relay sends the rest. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#unwatch();
    this.#wake?.();
    await this.#running;
  }

  #stir(): void {
    this.#stirred = true;
    this.#wake?.();
  }

  async #run(): Promise<void> {
    let failures = 0;
    while (!this.#closed) {
      this.#stirred = false;
      const waiting = [...this.#empty];
      try {
        const found = await this.#round();
        failures = 0;
        if (found === OCCUPIED) await this.#occupied();
        else this.#occupiedSince = undefined;
        if (found === 'nothing') for (const finish of waiting) finish();
        if (found === 'nothing' && !this.#stirred) await this.#pause(this.setup.every);
      } catch (error) {
        await this.#failed(this.source.translate(error), failures++);
      }
    }
    this.#unwatch();
    for (const finish of [...this.#empty]) finish();
    await this.source.close();
  }

  async #failed(error: Error, failures: number): Promise<void> {
    if (this.#closed) return;
    this.setup.onError(error, 'relay');
    if (error instanceof CroreError && error.code === 'CLOSED') this.#closed = true;
    await this.#pause(Math.min(FIRST_PAUSE * 2 ** failures, LONGEST_PAUSE));
  }

  /** Transactions are usually short; reports one that is not. */
  async #occupied(): Promise<void> {
    this.#occupiedSince ??= performance.now();
    if (performance.now() - this.#occupiedSince > OCCUPIED_LONG) {
      this.#occupiedSince = undefined;
      const why = 'a transaction on its connection is still open, or the file is locked';
      this.setup.onError(new CroreError('STORE_BUSY', `the outbox cannot be read: ${why}`), 'relay');
    }
    await this.#pause(OCCUPIED_PAUSE);
  }

  /** Sends one batch of every queue that has rows. */
  async #round(): Promise<'something' | 'nothing' | typeof OCCUPIED> {
    let after = '';
    let found = false;
    let failure: unknown;
    while (!this.#closed) {
      const queue = await this.source.nextQueue(after);
      if (queue === OCCUPIED) return OCCUPIED;
      if (queue === undefined) break;
      try {
        if ((await this.#send(queue)) === OCCUPIED) return OCCUPIED;
      } catch (error) {
        // A queue that cannot accept its jobs must not block the others.
        failure ??= error;
      }
      found = true;
      after = queue;
    }
    if (failure !== undefined) throw failure;
    return found ? 'something' : 'nothing';
  }

  async #send(queue: string): Promise<undefined | typeof OCCUPIED> {
    const batch = await this.source.batch(queue, { rows: this.setup.rows, bytes: MAX_BYTES });
    if (batch === OCCUPIED) return OCCUPIED;
    if (!batch) return;
    const { source, from, to, jobs } = batch;
    const answer = await this.store.sources.add(queue, jobs, { source, from, to });
    if (answer === 'stale') return this.#compare(queue, batch);
    // If this fails, the store's position is ahead of the outbox's, and the next batch detects that.
    while ((await this.source.confirm(queue, batch)) === OCCUPIED) {
      await this.#occupied();
      if (this.#closed) return;
    }
  }

  /** The store's position differs from the outbox's. */
  async #compare(queue: string, batch: Batch): Promise<undefined | typeof OCCUPIED> {
    const theirs = await this.store.sources.position(queue, batch.source);
    const renewed = await this.source.compare(queue, batch, theirs);
    if (renewed === OCCUPIED) return OCCUPIED;
    if (!renewed) return;
    const what = `the outbox of queue '${queue}' and the store disagree about the last sent job`;
    const why = 'a backup was restored or the store lost data; waiting jobs are sent, some perhaps twice';
    this.setup.onError(new CroreError('STORE_UNCERTAIN', `${what}: ${why}`), 'relay');
  }

  #pause(ms: number): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake?.(), ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
    });
  }
}
