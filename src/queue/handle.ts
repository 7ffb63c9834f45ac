import type { Engine } from '../engine/engine.js';
import type { Codec } from '../engine/input/codec.js';
import { decodeValue } from '../engine/input/payload.js';
import { CroreError } from '../errors.js';
import { type Attempt, type ManualAction, readActions, readAttempts } from '../job/attempt.js';
import { type Duration, milliseconds } from '../job/duration.js';
import type { Body, Job, JobRef, Need, State } from '../job/job.js';
import type { AddOutcome } from '../store/store.js';

/** A job as returned by `get` and `list`. */
export interface JobView<T, R>
  extends Omit<Job, 'payload' | 'result' | 'progress' | 'log' | 'attempts' | 'children' | 'spec'> {
  payload: T;
  result?: R;
  progress?: unknown;
  log?: string[];
  headers: Record<string, string>;
  /** The jobs that it waits, or waited, for. */
  needs: Need[];
  /** The children that it waits, or has waited, for. */
  children: Need[];
  /** The job that it is a child of. */
  parent?: JobRef;
  /** The batch of which it is a member. */
  memberOf?: JobRef;
  /** Every attempt that has ended, oldest first: when, where, how long, and the error with its stack. */
  attempts: Attempt[];
  /** What people did to the job, oldest first, as far as the interface they used says so. */
  actions: ManualAction[];
  maxAttempts: number;
  /** What the queue's codec could not decode, with the reason: this value is the stored bytes. */
  undecoded?: { payload?: string; result?: string };
}

export function viewOf<T, R>(job: Job, codec?: Codec): JobView<T, R> {
  const { payload, result, progress, log, attempts, children, spec, ...rest } = job;
  return {
    ...rest,
    ...(codec ? decodedFields<T, R>(job, codec) : plainFields<T, R>(payload, result)),
    ...(progress === undefined ? {} : { progress: JSON.parse(progress) as unknown }),
    ...(log === undefined ? {} : { log: log.split('\n').slice(0, -1) }),
    headers: spec.headers ?? {},
    needs: spec.needs ?? [],
    children: children?.children ?? [],
    ...(spec.parent ? { parent: spec.parent } : {}),
    ...(spec.batch ? { memberOf: spec.batch } : {}),
    attempts: attemptsOf(job),
    actions: readActions(job.attempts ?? ''),
    maxAttempts: spec.attempts,
  };
}

type Fields<T, R> = Pick<JobView<T, R>, 'payload' | 'result' | 'undecoded'>;

function plainFields<T, R>(payload: Body, result: Body | undefined): Fields<T, R> {
  const fields: Fields<T, R> = { payload: decodeValue(payload) as T };
  if (result !== undefined) fields.result = decodeValue(result) as R;
  return fields;
}

/** One record that cannot be decoded must not hide the others of its page. */
function decodedFields<T, R>({ payload, result }: Job, codec: Codec): Fields<T, R> {
  const undecoded: NonNullable<Fields<T, R>['undecoded']> = {};
  const decoded = (body: Body, name: 'payload' | 'result') => {
    try {
      return decodeValue(body, codec, `the ${name}`);
    } catch (error) {
      undecoded[name] = (error as Error).message;
      return Buffer.from(body as Uint8Array);
    }
  };
  const fields: Fields<T, R> = { payload: decoded(payload, 'payload') as T };
  if (result !== undefined) fields.result = decoded(result, 'result') as R;
  return Object.keys(undecoded).length > 0 ? { ...fields, undecoded } : fields;
}

/** The stored attempts, and the one that made the job done. */
export function attemptsOf({ attempts, state, attempt, startedAt, finishedAt, worker }: Job): Attempt[] {
  const known = readAttempts(attempts ?? '');
  if (state !== 'done' || finishedAt === undefined) return known;
  return [...known, { attempt, outcome: 'done', startedAt, endedAt: finishedAt, worker }];
}

/** A handle to an added job: the outcome of adding it, and how to follow it. */
export class Handle<T, R> {
  readonly #engine: Engine;
  readonly #codec: Codec | undefined;
  readonly #mayBeUnknown: boolean;

  constructor(
    engine: Engine,
    readonly queue: string,
    /** The job's id; when `outcome` is `duplicate`, `replaced` or `extended`, the id of the existing job. */
    readonly id: string,
    /** `full`: nothing was added. `replaced`, `extended`: a waiting job with the same unique key was changed instead. */
    readonly outcome: AddOutcome['outcome'],
    codec?: Codec,
    /** The job may never have existed. */
    mayBeUnknown = false,
  ) {
    this.#engine = engine;
    this.#codec = codec;
    this.#mayBeUnknown = mayBeUnknown;
  }

  async get(): Promise<JobView<T, R> | undefined> {
    const [job] = await this.#engine.store.get(this.queue, [this.id]);
    return job && viewOf(job, this.#codec);
  }

  async state(): Promise<State | undefined> {
    const [job] = await this.#engine.store.get(this.queue, [this.id]);
    return job?.state;
  }

  /** The last value the handler passed to `progress()`. */
  async progress(): Promise<unknown> {
    return (await this.get())?.progress;
  }

  /** The result of a job that is done; undefined until then. Rejects with BAD_PAYLOAD if the codec cannot decode it. */
  async result(): Promise<R | undefined> {
    const [job] = await this.#engine.store.get(this.queue, [this.id]);
    return job && this.#resultOf(job);
  }

  async cancel(): Promise<boolean> {
    const [cancelled] = await this.#engine.store.cancel(this.queue, [this.id]);
    return cancelled!;
  }

  /**
   * Resolves with the job's result once it is done, in whichever process it runs. Rejects with JOB_DEAD, JOB_CANCELLED, JOB_GONE
   * (it ended and its record is no longer kept), NOT_FOUND (for a handle of `queue.handle(id)`: no such job is known), TIMEOUT,
   * QUEUE_FULL when it was never added, or BAD_PAYLOAD when the codec cannot decode the result.
   */
  async finished(options: { timeout?: Duration } = {}): Promise<R> {
    if (this.outcome === 'full')
      throw new CroreError('QUEUE_FULL', `queue '${this.queue}' was full: the job was not added`);
    const timeout = options.timeout === undefined ? undefined : milliseconds(options.timeout, 'timeout');
    const job = await this.#engine.completions.wait(this.queue, this.id, timeout);
    const what = `job '${this.id}' of queue '${this.queue}'`;
    if (!job && this.#mayBeUnknown)
      throw new CroreError('NOT_FOUND', `there is no ${what}: it was never added, or its record is no longer kept`);
    if (!job) throw new CroreError('JOB_GONE', `${what} has ended, and its record is no longer kept`);
    if (job.state === 'dead') throw new CroreError('JOB_DEAD', `${what} is dead: ${job.error}`);
    if (job.state === 'cancelled') throw new CroreError('JOB_CANCELLED', `${what} was cancelled: ${job.error}`);
    return this.#resultOf(job) as R;
  }

  #resultOf({ result }: Job): R | undefined {
    if (result === undefined) return undefined;
    return decodeValue(result, this.#codec, `the result of job '${this.id}' of queue '${this.queue}'`) as R;
  }
}
