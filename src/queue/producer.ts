import { describe } from '../engine/input/check.js';
import { type AddOptions, resolveJob } from '../engine/input/options.js';
import { encodeValue, validate } from '../engine/input/payload.js';
import { CroreError } from '../errors.js';
import type { Bytes, NewJob } from '../job/job.js';
import type { AddOutcome } from '../store/store.js';
import { type AddMiddleware, AddMiddlewareChain, handled, refusedItem } from './add-middleware.js';
import { Handle } from './handle.js';
import { type AddManyItem, atItem, type QueueSetup, refuseClosed, splitItem, withHeaders } from './queue-input.js';
import { isTracing, traceAdd } from './tracing.js';

/** The part of a queue that adds jobs and raw tasks. */
export class Producer<T, R> {
  readonly #middleware: AddMiddlewareChain<T, R>;
  /** Names a payload in errors. */
  readonly #what: string;

  constructor(private readonly queue: QueueSetup) {
    this.#what = `payload for queue '${queue.name}'`;
    this.#middleware = new AddMiddlewareChain(queue.name);
  }

  use(middleware: AddMiddleware<T, R>): void {
    this.#middleware.use(middleware);
  }

  add(payload: T, options?: AddOptions): Promise<Handle<T, R>> {
    if (!isTracing()) return this.#add(payload, options);
    return traceAdd(this.queue.name, 1, (headers) => this.#add(payload, withHeaders(options, headers)));
  }

  #add(payload: T, options: AddOptions | undefined): Promise<Handle<T, R>> {
    if (this.#middleware.isEmpty) return this.#addNow(payload, options);
    return this.#addThrough(payload, options);
  }

  async #addThrough(payload: T, options: AddOptions | undefined): Promise<Handle<T, R>> {
    return this.#middleware.run(payload, options, (changed, more) => this.#addNow(changed, more));
  }

  async #addNow(payload: T, options: AddOptions | undefined): Promise<Handle<T, R>> {
    const { engine, name, capacity } = this.queue;
    const resolved = this.#resolve(payload, options);
    const job = resolved instanceof Promise ? await resolved : resolved;
    const outcome = await engine.add(name, job, capacity);
    return this.#handle(job, outcome);
  }

  async addMany(items: readonly AddManyItem<T>[]): Promise<Handle<T, R>[]> {
    checkItems(items, 'addMany');
    const { engine, name, capacity } = this.queue;
    const add: AddJobs = (jobs) => engine.addMany(name, jobs, capacity);
    return traceAdd(name, items.length, (headers) => this.#addItems('addMany', items, headers, add));
  }

  #addItems(what: string, items: readonly AddManyItem<T>[], headers: Headers, add: AddJobs): Promise<Handle<T, R>[]> {
    return this.#middleware.isEmpty
      ? this.#addMany(what, items, headers, add)
      : this.#addManyThrough(what, items, headers, add);
  }

  async #addMany(
    what: string,
    items: readonly AddManyItem<T>[],
    headers: Headers,
    add: AddJobs,
  ): Promise<Handle<T, R>[]> {
    const jobs: NewJob[] = [];
    for (let i = 0; i < items.length; i++) {
      try {
        const [payload, options] = splitItem(items[i]!);
        const resolved = this.#resolve(payload, withHeaders(options, headers));
        jobs.push(resolved instanceof Promise ? await resolved : resolved);
      } catch (error) {
        throw atItem(error, `${what}, item ${i}`);
      }
    }
    const outcomes = await add(jobs);
    return outcomes.map((outcome, i) => this.#handle(jobs[i]!, outcome));
  }

  /**
   * Runs the middleware for one item after the other, up to where it has called `next()`; when all have, adds the jobs together and goes
   * on with all of them. If one is refused, `next()` rejects for all others.
   */
  async #addManyThrough(
    what: string,
    items: readonly AddManyItem<T>[],
    headers: Headers,
    add: AddJobs,
  ): Promise<Handle<T, R>[]> {
    const jobs: NewJob[] = [];
    const runs: Promise<Handle<T, R>>[] = [];
    const added = signal<readonly AddOutcome[]>();
    try {
      for (const [i, item] of items.entries()) {
        try {
          await this.#startItem(item, headers, { jobs, runs, added: added.promise });
        } catch (error) {
          throw refusedItem(error, `${what}, item ${i}`);
        }
      }
      added.resolve(await add(jobs));
    } catch (error) {
      added.reject(error);
      throw error;
    }
    return Promise.all(runs);
  }

  /** Resolves when the job is ready to be added, or the middleware has answered without adding it. */
  async #startItem(
    item: AddManyItem<T>,
    headers: Headers,
    { jobs, runs, added }: { jobs: NewJob[]; runs: Promise<Handle<T, R>>[]; added: Promise<readonly AddOutcome[]> },
  ): Promise<void> {
    const [payload, options] = splitItem(item);
    const ready = signal<void>();
    const run = this.#middleware.run(payload, withHeaders(options, headers), async (changed, more) => {
      const job = await this.#resolve(changed, more);
      const place = jobs.push(job) - 1;
      ready.resolve();
      return this.#handle(job, (await added)[place]!);
    });
    runs.push(handled(run));
    await Promise.race([ready.promise, run]);
  }

  addIn(connection: unknown, payload: T, options?: AddOptions): Handle<T, R> | Promise<Handle<T, R>> {
    if (this.queue.engine.store.addInAsync) return this.#addInLater(connection, payload, options);
    this.#refuseMiddleware('addIn');
    return this.#addAllIn(connection, [this.#resolveNow(payload, options)])[0]!;
  }

  addManyIn(connection: unknown, items: readonly AddManyItem<T>[]): Handle<T, R>[] | Promise<Handle<T, R>[]> {
    if (this.queue.engine.store.addInAsync) return this.#addManyInLater(connection, items);
    checkItems(items, 'addManyIn');
    this.#refuseMiddleware('addManyIn');
    const jobs = items.map((item, i) => {
      try {
        return this.#resolveNow(...splitItem(item));
      } catch (error) {
        throw atItem(error, `addManyIn, item ${i}`);
      }
    });
    return this.#addAllIn(connection, jobs);
  }

  async #addInLater(connection: unknown, payload: T, options: AddOptions | undefined): Promise<Handle<T, R>> {
    const add: AddJobs = (jobs) => this.#addAllInLater(connection, jobs);
    const one = async (changed: T, more: AddOptions | undefined) => {
      const job = await this.#resolve(changed, more);
      return this.#handle(job, (await add([job]))[0]!);
    };
    return this.#middleware.isEmpty ? one(payload, options) : this.#middleware.run(payload, options, one);
  }

  async #addManyInLater(connection: unknown, items: readonly AddManyItem<T>[]): Promise<Handle<T, R>[]> {
    checkItems(items, 'addManyIn');
    return this.#addItems('addManyIn', items, undefined, (jobs) => this.#addAllInLater(connection, jobs));
  }

  async push(tasks: string | Bytes | readonly (string | Bytes)[]): Promise<number> {
    const { engine, name, capacity } = this.queue;
    if (typeof tasks === 'string' || tasks instanceof Uint8Array) {
      return (await engine.push(name, this.#task(tasks), capacity)) ? 1 : 0;
    }
    if (!Array.isArray(tasks))
      throw new CroreError('BAD_PAYLOAD', `a task must be a string or bytes, not ${describe(tasks)}`);
    const all = tasks.map((task) => this.#task(task));
    return engine.pushMany(name, all, capacity);
  }

  /** Synchronous if the schema is, so that a batch of adds does not cost a promise each. */
  #resolve(payload: T, options: AddOptions | undefined): NewJob | Promise<NewJob> {
    const { schema } = this.queue;
    const checked = schema ? validate(schema, payload, this.#what) : undefined;
    return checked instanceof Promise
      ? checked.then(() => this.#encode(payload, options))
      : this.#encode(payload, options);
  }

  #resolveNow(payload: T, options: AddOptions | undefined): NewJob {
    const job = this.#resolve(payload, options);
    if (!(job instanceof Promise)) return job;
    job.catch(() => {}); // its result comes too late to matter
    const why = 'its schema is asynchronous, which a transaction does not allow';
    throw new CroreError('BAD_OPTION', `addIn: queue '${this.queue.name}': ${why}`);
  }

  /** To leave it out in silence could leave out a check or a header that others rely on. */
  #refuseMiddleware(what: string): void {
    if (this.#middleware.isEmpty) return;
    const why = 'it has middleware, which is asynchronous, and a transaction does not allow that';
    throw new CroreError('BAD_OPTION', `${what}: queue '${this.queue.name}': ${why}`);
  }

  #addAllIn(connection: unknown, jobs: readonly NewJob[]): Handle<T, R>[] {
    refuseClosed(this.queue);
    const { engine, name, capacity } = this.queue;
    const outcomes = engine.addIn(connection, name, jobs, capacity);
    return outcomes.map((outcome, i) => this.#handle(jobs[i]!, outcome));
  }

  #addAllInLater(connection: unknown, jobs: readonly NewJob[]): Promise<AddOutcome[]> {
    refuseClosed(this.queue);
    const { engine, name, capacity } = this.queue;
    return engine.store.addInAsync!(connection, name, jobs, capacity);
  }

  #encode(payload: T, options: AddOptions | undefined): NewJob {
    const { engine, name, maxPayload, codec } = this.queue;
    const body = encodeValue(payload, this.#what, maxPayload, codec);
    return resolveJob(name, body, options, engine.store.now());
  }

  #handle(job: NewJob, outcome: AddOutcome): Handle<T, R> {
    const { engine, name, codec } = this.queue;
    return new Handle(engine, name, 'id' in outcome ? outcome.id : job.id, outcome.outcome, codec);
  }

  #task(task: unknown): Bytes {
    const { name, maxPayload, codec } = this.queue;
    const bytes = typeof task === 'string' ? Buffer.from(task) : task;
    if (!(bytes instanceof Uint8Array))
      throw new CroreError('BAD_PAYLOAD', `a task must be a string or bytes, not ${describe(task)}`);
    return encodeValue(bytes, `task for queue '${name}'`, maxPayload, codec) as Bytes;
  }
}

type Headers = Record<string, string> | undefined;
type AddJobs = (jobs: readonly NewJob[]) => Promise<readonly AddOutcome[]>;

function checkItems(items: unknown, what: string): void {
  if (!Array.isArray(items)) throw new CroreError('BAD_OPTION', `${what} takes an array, not ${describe(items)}`);
}

interface Signal<V> {
  promise: Promise<V>;
  resolve: (value: V) => void;
  reject: (error: unknown) => void;
}

function signal<V>(): Signal<V> {
  const parts: Partial<Signal<V>> = {};
  parts.promise = handled(
    new Promise<V>((resolve, reject) => {
      parts.resolve = resolve;
      parts.reject = reject;
    }),
  );
  return parts as Signal<V>;
}
