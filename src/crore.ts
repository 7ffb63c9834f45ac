import type { StandardSchemaV1 } from '@standard-schema/spec';
import { Engine } from './engine/engine.js';
import { checkInteger, checkName, checkOptions } from './engine/input/check.js';
import type { Codec } from './engine/input/codec.js';
import { encodeValue } from './engine/input/payload.js';
import { type Logger, PLAIN_LOGGER, resolveLogger } from './engine/logging/failure-log.js';
import { oncePerOutage } from './engine/logging/outage-filter.js';
import { prometheusText } from './engine/metrics/prometheus.js';
import { collect } from './engine/metrics/snapshot.js';
import type { When } from './engine/schedules/schedule-ticks.js';
import {
  checkScheduleName,
  defineSchedule,
  extraJob,
  type ScheduledJobOptions,
  type ScheduleOptions,
  type ScheduleView,
  scheduleView,
} from './engine/schedules/schedules.js';
import { CroreError, isCroreError } from './errors.js';
import { type Duration, milliseconds } from './job/duration.js';
import { Handle } from './queue/handle.js';
import { Queue } from './queue/queue.js';
import type { QueueContext, QueueOptions } from './queue/queue-input.js';
import { addTree, type TreeItem } from './queue/tree.js';
import { openStore } from './store/open.js';
import { checkLibrary, type SqliteLibrary } from './store/sqlite/file/driver.js';
import type { Capacity, Store } from './store/store.js';
import { DEFAULT_URL } from './store/url.js';
import { Heartbeat } from './worker/heartbeat/heartbeat.js';
import { checkFunction, harmless } from './worker/options.js';

export interface OpenOptions {
  /** How long a single store call may take; default 10 s. */
  timeout?: Duration;
  /** Maximum size of a payload, task or result in bytes; default 1 MiB. */
  maxPayload?: number;
  /** Called for background errors, and for a store configured so that it can lose work. Default: logs them. */
  onError?: (error: Error, what: string) => void;
  /** Gets a line for each failed attempt and each dead job, at most ten a second. Default: plain lines on stderr; false: none. */
  logger?: Logger | false;
  /**
   * The SQLite library of the application, such as the module `node:sqlite`, for a store in a SQLite file: needed for `addIn` with its
   * connections if Crore would choose another one (see `crore/sqlite`).
   */
  sqlite?: SqliteLibrary;
  /** Replaces the store's clock, for tests. */
  clock?: () => number;
  /** Replaces Math.random, for tests. */
  random?: () => number;
}

const KNOWN = ['timeout', 'maxPayload', 'onError', 'logger', 'sqlite', 'clock', 'random'] as const;

/**
 * Opens a store: `sqlite:FILE`, `sqlite::memory:`, `redis://…`, `rediss://…`, `redis+sentinel://…`,
 * `redis+cluster://…` or `postgres://…`; default `CRORE_STORE` from the environment, else `sqlite:crore.db`.
 */
export async function open(
  url: string = process.env.CRORE_STORE || DEFAULT_URL,
  options: OpenOptions = {},
): Promise<Crore> {
  checkOptions(options, KNOWN, 'open');
  const timeout = options.timeout === undefined ? 10_000 : Math.max(1, milliseconds(options.timeout, 'timeout'));
  const maxPayload = options.maxPayload === undefined ? 1_048_576 : checkInteger(options.maxPayload, 'maxPayload', 1);
  const logger = resolveLogger(options.logger);
  const onError = harmless(checkFunction(options.onError, 'onError') ?? logErrors(logger));
  const clock = checkFunction(options.clock, 'clock');
  const random = checkFunction(options.random, 'random');
  const library = options.sqlite === undefined ? undefined : checkLibrary(options.sqlite);
  const store = await openStore(url, { timeout, clock, library });
  for (const warning of store.warnings) onError(new CroreError('STORE_UNSUPPORTED', warning), 'warning');
  return new Crore(store, { url, timeout, maxPayload, onError, logger, random });
}

interface CroreSetup {
  /** The URL of the store, which may hold a password. */
  url?: string;
  timeout: number;
  maxPayload: number;
  onError: (error: Error, what: string) => void;
  logger?: Logger | undefined;
  random: (() => number) | undefined;
}

interface Connection {
  engine: Engine;
  url: string;
}

const connections = new WeakMap<Crore, Connection>();

/** What is behind a connection, for the interfaces of this package; the library does not expose it. */
export function connectionOf(crore: Crore): Connection {
  const connection = connections.get(crore);
  if (!connection) throw new CroreError('BAD_OPTION', 'not a connection returned by open()');
  return connection;
}

export function engineOf(crore: Crore): Engine {
  return connectionOf(crore).engine;
}

/** A connection to a store, giving access to its queues. */
export class Crore {
  readonly #engine: Engine;
  readonly #heartbeat: Heartbeat;
  readonly #setup: CroreSetup;
  readonly #workers = new Set<{ close(): Promise<void> }>();
  readonly #codecs = new Map<string, Codec>();
  #scheduling: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(store: Store, setup: CroreSetup) {
    this.#setup = setup;
    this.#engine = new Engine(store, { random: setup.random, onError: setup.onError, logger: setup.logger });
    connections.set(this, { engine: this.#engine, url: setup.url ?? '' });
    this.#heartbeat = new Heartbeat(store, setup.timeout, setup.onError);
  }

  /** With a schema, the types of the payload are those of its input and output. */
  queue<S extends StandardSchemaV1, R = unknown>(
    name: string,
    options: { schema: S; limits?: Capacity; codec?: Codec },
  ): Queue<StandardSchemaV1.InferInput<S>, R, StandardSchemaV1.InferOutput<S>>;
  queue<T = unknown, R = unknown, P = T>(name: string, options?: QueueOptions<T, P>): Queue<T, R, P>;
  queue<T, R, P>(name: string, options?: QueueOptions<T, P>): Queue<T, R, P> {
    return new Queue<T, R, P>(this.#context(), checkName(name, 'queue name'), options);
  }

  /**
   * Adds a job with its children, which run before it, and may have children of their own, in any queues. Its handler gets their results
   * from `job.needs()`. If something cannot be added, what has been added is cancelled.
   */
  async addTree(root: TreeItem): Promise<Handle<unknown, unknown>> {
    return addTree(this.#context(), root);
  }

  /**
   * Creates jobs on a schedule: `when` is a cron expression (`'0 4 * * *'`) or an interval (`'10s'`). Calling it again with the
   * same arguments, from any number of processes, changes nothing; with different ones it replaces the schedule.
   */
  async schedule<T = unknown>(
    name: string,
    when: When,
    job: { queue: string; payload?: T } & ScheduledJobOptions,
    options: ScheduleOptions = {},
  ): Promise<ScheduleView> {
    checkScheduleName(name);
    if (job === null || typeof job !== 'object')
      throw new CroreError('BAD_OPTION', `schedule '${name}': job must be an object with a queue`);
    const { queue, payload = null, ...jobOptions } = job;
    checkName(queue, `schedule '${name}': queue name`);
    const { store } = this.#engine;
    const body = encodeValue(payload, `payload of schedule '${name}'`, this.#setup.maxPayload);
    const since = store.now();
    const { text, first } = defineSchedule(name, queue, when, body, jobOptions, options, since);
    const schedule = await store.schedules.put({ name, queue, definition: text, since, next: first });
    this.#scheduling ??= this.#engine.scheduleRunner.watch();
    this.#engine.scheduleRunner.nudge();
    return scheduleView(schedule);
  }

  /** All schedules, by name. */
  async schedules(): Promise<ScheduleView[]> {
    return (await this.#engine.store.schedules.list()).map(scheduleView);
  }

  /** Removes a schedule; its jobs stay. Returns false when no schedule has this name. */
  unschedule(name: string): Promise<boolean> {
    return this.#engine.store.schedules.remove(checkScheduleName(name));
  }

  /** Adds a job of a schedule now, in addition to its ticks. */
  async runSchedule<T = unknown, R = unknown>(name: string): Promise<Handle<T, R>> {
    checkScheduleName(name);
    const { store } = this.#engine;
    const schedule = (await store.schedules.list()).find((one) => one.name === name);
    if (!schedule) throw new CroreError('NOT_FOUND', `there is no schedule '${name}'`);
    const job = extraJob(schedule, store.now());
    const outcome = await this.#engine.add(schedule.queue, job, {});
    const id = 'id' in outcome ? outcome.id : job.id;
    return new Handle(this.#engine, schedule.queue, id, outcome.outcome);
  }

  /** Names of all queues in the store. */
  queues(): Promise<string[]> {
    return this.#engine.store.queues();
  }

  /**
   * Metrics as Prometheus text: depths, ages and workers of the queues as the store has them now, and what this connection has
   * added, claimed and settled, with wait and run times.
   */
  async metrics(): Promise<string> {
    return prometheusText(await collect(this.#engine));
  }

  /**
   * Writes a complete copy of the store, as it is now, to a new file. Only for SQLite files: Redis has means of its own. Other
   * processes are not disturbed; the event loop of this one is blocked for as long as the copy takes.
   */
  async backup(file: string): Promise<void> {
    const { store } = this.#engine;
    if (!store.backup)
      throw new CroreError('STORE_UNSUPPORTED', 'backup: this store is not a SQLite file; use the means of its server');
    store.backup(file);
  }

  /** Closes all workers gracefully, then the connection. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #context(): QueueContext {
    return {
      engine: this.#engine,
      heartbeat: this.#heartbeat,
      maxPayload: this.#setup.maxPayload,
      onError: this.#setup.onError,
      workers: this.#workers,
      isClosed: () => this.#closing !== undefined,
      codecs: this.#codecs,
    };
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.close()));
    this.#scheduling?.();
    await this.#heartbeat.close();
    await this.#engine.close();
  }
}

/** Without a logger, errors that nobody else hears of are still printed. */
function logErrors(logger: Logger = PLAIN_LOGGER): (error: Error, what: string) => void {
  return oncePerOutage((error, what) => {
    const message =
      isCroreError(error) && error.code === 'STORE_UNREACHABLE' ? error.message : `${what}: ${error.message}`;
    logger.error({ err: error, what }, message);
  });
}
