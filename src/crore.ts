import { checkInteger, checkName, checkOptions } from './engine/check.js';
import { Engine } from './engine/engine.js';
import { CroreError } from './errors.js';
import { type Duration, milliseconds } from './job/duration.js';
import { Queue, type QueueOptions } from './queue.js';
import { openStore } from './store/open.js';
import type { Store } from './store/store.js';
import { DEFAULT_URL } from './store/url.js';
import { Heart } from './worker/heart.js';
import { checkFunction, harmless } from './worker/options.js';

export interface OpenOptions {
  /** How long any single call to the store may take; default 10 s. */
  timeout?: Duration;
  /** Largest payload, task or result in bytes; default 1 MiB. */
  maxPayload?: number;
  /** Told of trouble in the background, and of a store set up to lose work. Default: a line on stderr. */
  onError?: (error: Error, what: string) => void;
  /** A clock in place of the store's, for tests. */
  clock?: () => number;
  /** A source of randomness in place of Math.random, for tests. */
  random?: () => number;
}

const KNOWN = ['timeout', 'maxPayload', 'onError', 'clock', 'random'] as const;

/**
 * Opens a store: `sqlite:FILE`, `sqlite::memory:`, `redis://…`, `rediss://…`, `redis+sentinel://…` or
 * `redis+cluster://…`; default `CRORE_STORE` from the environment, else `sqlite:crore.db`.
 */
export async function open(
  url: string = process.env.CRORE_STORE || DEFAULT_URL,
  options: OpenOptions = {},
): Promise<Crore> {
  checkOptions(options, KNOWN, 'open');
  const timeout = options.timeout === undefined ? 10_000 : Math.max(1, milliseconds(options.timeout, 'timeout'));
  const maxPayload = options.maxPayload === undefined ? 1_048_576 : checkInteger(options.maxPayload, 'maxPayload', 1);
  const onError = harmless(checkFunction(options.onError, 'onError') ?? complain);
  const clock = checkFunction(options.clock, 'clock');
  const random = checkFunction(options.random, 'random');
  const store = await openStore(url, { timeout, clock });
  for (const warning of store.warnings) onError(new CroreError('STORE_UNSUPPORTED', warning), 'warning');
  return new Crore(store, { timeout, maxPayload, onError, random });
}

interface CroreSetup {
  timeout: number;
  maxPayload: number;
  onError: (error: Error, what: string) => void;
  random: (() => number) | undefined;
}

/** A connection to a store, and the way to its queues. */
export class Crore {
  readonly #engine: Engine;
  readonly #heart: Heart;
  readonly #setup: CroreSetup;
  readonly #workers = new Set<{ close(): Promise<void> }>();
  #closing: Promise<void> | undefined;

  constructor(store: Store, setup: CroreSetup) {
    this.#setup = setup;
    this.#engine = new Engine(store, { random: setup.random, onError: setup.onError });
    this.#heart = new Heart(store, setup.timeout, setup.onError);
  }

  queue<T = unknown, R = unknown>(name: string, options?: QueueOptions<T>): Queue<T, R> {
    const context = {
      engine: this.#engine,
      heart: this.#heart,
      maxPayload: this.#setup.maxPayload,
      onError: this.#setup.onError,
      workers: this.#workers,
      isClosed: () => this.#closing !== undefined,
    };
    return new Queue<T, R>(context, checkName(name, 'queue name'), options);
  }

  /** Names of all queues the store knows. */
  queues(): Promise<string[]> {
    return this.#engine.store.queues();
  }

  /** Closes all workers gracefully, then the connection. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.close()));
    await this.#heart.close();
    await this.#engine.close();
  }
}

function complain(error: Error, what: string): void {
  process.stderr.write(`crore: ${what}: ${error.message}\n`);
}
