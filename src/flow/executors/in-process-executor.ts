import { isFatal } from '../../errors.js';
import type { NodeContext, NodeFunction } from '../graph/node-spec.js';
import type { Executor, NodeOutcome, NodeTask } from './executor.js';

const NOTHING = Object.freeze({});
const DONE: NodeOutcome = Object.freeze({ exit: 0 });

/** What a function receives besides its needs; the signal is created on first access. */
class Context implements NodeContext {
  #controller: AbortController | undefined;

  constructor(private readonly task: NodeTask) {}

  get id(): string {
    return this.task.id;
  }

  get attempt(): number {
    return this.task.attempt;
  }

  get item(): unknown {
    return this.task.item;
  }

  get index(): number | undefined {
    return this.task.part;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }

  stop(why: string): void {
    this.#controller ??= new AbortController();
    this.#controller.abort(new Error(why));
  }
}

/** Calls a function; a result that is not a promise is returned synchronously. */
export function callFunction(call: NodeFunction, task: NodeTask): NodeOutcome | Promise<NodeOutcome> {
  const context = new Context(task);
  try {
    const value = call((task.needs ?? NOTHING) as never, context as never);
    if (!isPromise(value)) return value === undefined ? DONE : { exit: 0, value };
    return new Promise((resolve) => {
      // A function that ignores the signal is abandoned: nobody waits for it.
      task.stop = (why) => {
        context.stop(why);
        resolve({ exit: 1, error: why });
      };
      value.then(
        (late) => resolve(late === undefined ? DONE : { exit: 0, value: late }),
        (error) => resolve(failure(error)),
      );
    });
  } catch (error) {
    return failure(error);
  }
}

export function failure(error: unknown): NodeOutcome {
  const text =
    error instanceof Error ? error.message : String((error as { message?: unknown } | null)?.message ?? safe(error));
  return { exit: 1, error: text || 'it threw', fatal: isFatal(error) || undefined };
}

function safe(value: unknown): string {
  try {
    return String(value);
  } catch {
    return 'it threw a value that cannot be printed';
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | undefined)?.then === 'function';
}

/** Runs functions in the runner's own process. */
export class InProcessExecutor implements Executor {
  run(task: NodeTask): NodeOutcome | Promise<NodeOutcome> {
    const { work } = task.spec;
    if (work.kind !== 'function') throw new Error(`node '${task.id}' is not a function`);
    return callFunction(work.call, task);
  }

  async close(): Promise<void> {}
}
