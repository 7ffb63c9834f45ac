import { checkOptions, describe } from '../engine/input/check.js';
import type { AddOptions } from '../engine/input/options.js';
import { CroreError } from '../errors.js';
import { describeError, errorLine } from '../job/attempt.js';
import { Handle } from './handle.js';
import { atItem } from './queue-input.js';

/** A job that is about to be added. Middleware may change its payload and options until it calls `next()`; nothing is checked before. */
export interface AddRequest<T> {
  readonly queue: string;
  payload: T;
  /** A copy of what the caller gave; `headers` is always there. */
  options: AddOptions & { headers: Record<string, string> };
}

/**
 * Something to do around every add of a queue: `await next()` goes on to the next one, and in the end adds the job and returns its handle.
 * To refuse a job, throw. To answer with another job instead, return its handle without calling `next`.
 */
export type AddMiddleware<T, R> = (
  job: AddRequest<T>,
  next: () => Promise<Handle<T, R>>,
  // biome-ignore lint/suspicious/noConfusingVoidType: it need not return what next() returned
) => Handle<T, R> | void | Promise<Handle<T, R> | void>;

/** The middleware of a queue object, in the order it was given. */
export class AddMiddlewareChain<T, R> {
  readonly #all: AddMiddleware<T, R>[] = [];

  constructor(private readonly queue: string) {}

  get isEmpty(): boolean {
    return this.#all.length === 0;
  }

  use(middleware: AddMiddleware<T, R>): void {
    if (typeof middleware !== 'function')
      throw new CroreError('BAD_OPTION', `the middleware must be a function, not ${describe(middleware)}`);
    this.#all.push(middleware);
  }

  /** Runs all of them around `add`. */
  run(
    payload: T,
    options: AddOptions | undefined,
    add: (payload: T, options: AddOptions | undefined) => Promise<Handle<T, R>>,
  ): Promise<Handle<T, R>> {
    const request = newRequest(this.queue, payload, options);
    return this.#call(0, request, () => add(request.payload, optionsOf(request)));
  }

  async #call(i: number, request: AddRequest<T>, add: () => Promise<Handle<T, R>>): Promise<Handle<T, R>> {
    const middleware = this.#all[i];
    if (!middleware) return add();
    let following: Promise<Handle<T, R>> | undefined;
    let isOver = false;
    const next = async () => {
      if (following) throw this.#misuse('called next() twice');
      if (isOver) throw this.#misuse('called next() after it had returned');
      following = this.#call(i + 1, request, add);
      return following;
    };
    let returned: unknown;
    try {
      returned = await middleware(request, () => handled(next()));
    } finally {
      isOver = true;
    }
    if (returned instanceof Handle) return returned;
    if (!following) throw this.#misuse('neither called next() nor threw an error');
    return following;
  }

  #misuse(what: string): CroreError {
    return new CroreError('REFUSED', `middleware of queue '${this.queue}' ${what}`);
  }
}

/** Names the item of `addMany` that was refused; what the middleware threw is the cause. */
export function refusedItem(error: unknown, place: string): unknown {
  if (error instanceof CroreError) return atItem(error, place);
  return new CroreError('REFUSED', `${place}: ${errorLine(describeError(error))}`, { cause: error });
}

/** The same promise; if nobody waits for it, its rejection is not an unhandled one. */
export function handled<V>(promise: Promise<V>): Promise<V> {
  promise.catch(() => {});
  return promise;
}

/** What the caller gave stays as it is. */
function newRequest<T>(queue: string, payload: T, options: AddOptions = {}): AddRequest<T> {
  checkOptions(options, Object.keys(options ?? {}), 'add');
  const { headers = {} } = options;
  const isRecord = headers !== null && typeof headers === 'object';
  return { queue, payload, options: { ...options, headers: isRecord ? { ...headers } : headers } };
}

/** Headers that stayed empty were not asked for. */
function optionsOf({ options }: AddRequest<unknown>): AddOptions | undefined {
  if (options === null || typeof options !== 'object') return options;
  const { headers, ...rest } = options;
  const hasHeaders = headers !== undefined && (typeof headers !== 'object' || Object.keys(headers ?? {}).length > 0);
  if (hasHeaders) return options;
  return Object.keys(rest).length > 0 ? rest : undefined;
}
