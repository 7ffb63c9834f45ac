import { Crore, engineOf } from '../crore.js';
import { checkInteger, checkOneOf, checkOptions, describe } from '../engine/input/check.js';
import { CroreError } from '../errors.js';
import { type Duration, milliseconds } from '../job/duration.js';
import { STATES, type State } from '../job/job.js';
import type { JobView } from '../queue/handle.js';
import { openStore } from '../store/open.js';
import type { Counts, Store, WorkerInfo } from '../store/store.js';
import type { Worker } from '../worker/worker.js';
import { seededRandom, VirtualClock } from './clock.js';
import { FaultyStore, STEPS, type Step } from './faulty-store.js';
import { type BusyQueue, IdleCheck, type Rest } from './idle.js';
import { Time } from './time.js';

export interface TestingOptions {
  /** The initial time of the clock; default 2030-01-01 00:00 UTC. */
  now?: Date | number;
  /** Seed of all randomness, such as backoff jitter; default 1. */
  seed?: number;
  /** A SQLite file instead of memory, for applications that use `addIn`. */
  file?: string;
  /** Real time that handlers get to make progress before `advance` continues without them and `drain` fails; default 2 s. */
  patience?: Duration;
}

export interface KillOptions {
  /** The step at which the worker is killed; default: at once. */
  at?: Step;
}

export interface Inspection<T, R> {
  counts: Counts;
  /** At most a thousand of each state. */
  jobs: Record<State, JobView<T, R>[]>;
  workers: (WorkerInfo & { killed: boolean })[];
}

/** Opens a connection for tests: the real engine on an in-memory store, with a clock that the test moves. */
export async function openTesting(options: TestingOptions = {}): Promise<Testing> {
  checkOptions(options, ['now', 'seed', 'file', 'patience'], 'openTesting');
  const now = Number(options.now ?? Date.UTC(2030, 0, 1));
  if (!Number.isSafeInteger(now) || now < 0) throw new CroreError('BAD_OPTION', `now: ${options.now} is not a time`);
  const seed = options.seed === undefined ? 1 : checkInteger(options.seed, 'seed', 0);
  const patience = options.patience === undefined ? 2_000 : milliseconds(options.patience, 'patience');
  const clock = new VirtualClock(now);
  const store = await openStore(`sqlite:${options.file ?? ':memory:'}`, { timeout: 10_000, clock: () => clock.now });
  return new Testing(store, clock, seed, patience);
}

export class Testing {
  /** A real connection; everything works as in production, except that time stands still. */
  readonly crore: Crore;
  /** Errors reported in the background, such as outcomes that came too late. */
  readonly errors: Error[] = [];
  readonly #store: Store;
  readonly #clock: VirtualClock;
  readonly #wire: FaultyStore;
  readonly #quiet: IdleCheck;
  readonly #time: Time;
  readonly #patience: number;
  readonly #deaths = new Set<Promise<void>>();
  /** Kills whose step has not been reached yet. */
  readonly #armed = new Set<(died: boolean) => void>();
  #advancing: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(store: Store, clock: VirtualClock, seed: number, patience: number) {
    this.#store = store;
    this.#clock = clock;
    this.#patience = patience;
    this.#wire = new FaultyStore(store);
    const onError = (error: Error) => void this.errors.push(error);
    const random = seededRandom(seed);
    this.crore = new Crore(this.#wire.store, { timeout: 10_000, maxPayload: 1_048_576, onError, random });
    this.#quiet = new IdleCheck(store, this.#wire, clock);
    this.#time = new Time(clock, engineOf(this.crore), store, this.#wire);
  }

  /** The time of the clock, in milliseconds. */
  get now(): number {
    return this.#clock.now;
  }

  /**
   * Moves the clock, and does along the way what passing time would do: due jobs become ready, living workers send heartbeats,
   * the leases of killed workers end. At each time at which something is due, workers get to finish what they can.
   */
  async advance(duration: Duration): Promise<void> {
    this.#checkOpen();
    const ms = milliseconds(duration, 'advance');
    const settle = async () => {
      const { restless, ranOut } = await this.#settle();
      if (ranOut) this.#quiet.overlook(restless);
    };
    // Concurrent calls run one after the other.
    const advancing = this.#advancing.then(() => this.#time.advance(ms, settle));
    this.#advancing = advancing.catch(() => {});
    await advancing;
  }

  /** Resolves when `duration` has passed on the clock of the kit: for handlers that simulate work. */
  sleep(duration: Duration, options: { signal?: AbortSignal } = {}): Promise<void> {
    checkOptions(options, ['signal'], 'sleep');
    return this.#clock.sleep(milliseconds(duration, 'sleep'), options.signal);
  }

  /**
   * Resolves when nothing is ready or active, in this queue or in all queues that have workers; jobs held by killed workers do
   * not count. Fails when nothing happens within the patience of the kit, and says what is stuck.
   */
  async drain(queue?: string): Promise<void> {
    this.#checkOpen();
    this.#quiet.overlook([]);
    const { restless } = await this.#settle(queue);
    if (restless.length === 0) return;
    const words = await Promise.all(restless.map((one) => this.#describe(one)));
    throw new CroreError('TIMEOUT', `drain: ${words.join('; ')}`);
  }

  /**
   * Kills a worker as with kill -9, at once or at its next such step: nothing of it reaches the store any more, and its jobs stay
   * leased until `advance` has passed the end of its lease. Resolves when it is dead; with false if the kit was closed before.
   */
  kill<T, C>(worker: Worker<T, C>, options: KillOptions = {}): Promise<boolean> {
    this.#checkOpen();
    checkOptions(options, ['at'], 'kill');
    const id = (worker as { id?: unknown } | undefined)?.id;
    if (typeof id !== 'string' || !this.#wire.living.has(id)) {
      throw new CroreError('BAD_OPTION', `kill: ${describe(id ?? worker)} is not a live worker of this kit`);
    }
    const at = options.at === undefined ? undefined : checkOneOf(options.at, 'at', STEPS);
    return new Promise((resolve) => {
      this.#armed.add(resolve);
      const died = () => {
        this.#armed.delete(resolve);
        const death = this.#recordDeath(worker, id);
        this.#deaths.add(death);
        void death.finally(() => this.#deaths.delete(death)).then(() => resolve(true));
      };
      this.#wire.arm(id, at ?? 'claimed', died);
      if (at === undefined) this.#wire.cut(id);
    });
  }

  /** The state of a queue. */
  async inspect<T = unknown, R = unknown>(queue: string): Promise<Inspection<T, R>> {
    const handle = this.crore.queue<T, R>(queue);
    const [counts, workers, ...pages] = await Promise.all([
      handle.count(),
      handle.workers(),
      ...STATES.map((state) => handle.list(state, { limit: 1_000 })),
    ]);
    const jobs = Object.fromEntries(STATES.map((state, i) => [state, pages[i]!.jobs]));
    return {
      counts,
      jobs: jobs as Inspection<T, R>['jobs'],
      workers: workers.map((worker) => ({ ...worker, killed: this.#wire.dead.has(worker.id) })),
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#clock.stop();
    for (const resolve of this.#armed) resolve(false);
    await Promise.all(this.#deaths);
    await this.crore.close();
  }

  /** Cleans up a killed worker in this process: stops its handlers, ignores their results, and releases its timers. */
  async #recordDeath(worker: { close(): Promise<void> }, id: string): Promise<void> {
    await this.#wire.silence(id);
    await worker.close();
  }

  async #settle(queue?: string): Promise<Rest> {
    const rest = await this.#quiet.wait(this.#patience, queue);
    await Promise.all(this.#deaths);
    return rest;
  }

  async #describe({ queue, ready, active, workers, paused, held }: BusyQueue): Promise<string> {
    const { jobs } = await this.#store.list(queue, { state: active > 0 ? 'active' : 'ready', limit: 3 });
    const names = jobs.map((job) => `'${job.id}'`).join(', ');
    const why = paused
      ? 'it is paused'
      : workers === 0
        ? 'it has no workers'
        : held
          ? 'its limits allow no start until the clock is moved'
          : this.#clock.sleepers > 0
            ? 'its handlers sleep until the clock is moved'
            : `nothing has happened for ${this.#patience} ms`;
    const what = `queue '${queue}' has ${ready} ready and ${active} active${names ? ` (${names})` : ''}`;
    return `${what}, and ${why}`;
  }

  #checkOpen(): void {
    if (this.#closing) throw new CroreError('CLOSED', 'the testing kit has been closed');
  }
}
