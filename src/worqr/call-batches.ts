import { Batcher, type BatchLimits } from '../engine/batcher.js';
import { returnLease } from '../engine/raw-task.js';
import { CroreError } from '../errors.js';
import type { RawTaskStore, TaskCompletion, TaskGroup } from '../store/raw-store.js';
import { MAX_BATCH } from '../store/store.js';
import { gone, processId } from './names.js';

/** A batch of this many bytes is sent early. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Maximum number of queues whose batchers are cached. */
const MAX_QUEUES = 10_000;

interface Batchers {
  enqueues: Batcher<TaskGroup, undefined>;
  finishes: Batcher<TaskCompletion, undefined>;
  returns: Batcher<string, undefined>;
}

/** Sends single calls to the store in batches, per queue and method. */
export class CallBatches {
  readonly #queues = new Map<string, Batchers>();

  constructor(
    private readonly store: RawTaskStore,
    /** Called with processes that are known to have ended, or to be gone. */
    private readonly over: (queue: string, tokens: readonly string[]) => void,
  ) {}

  /** Rejects with DUPLICATE_TASK if a unique task is refused. */
  enqueue(queue: string, group: TaskGroup): Promise<void> {
    return group.tasks.length > 0 ? this.#of(queue).enqueues.add(group) : Promise.resolve();
  }

  /** Rejects with PROCESS_GONE if the lease is gone; so does `giveBack`. */
  finish(queue: string, end: TaskCompletion): Promise<void> {
    return this.#of(queue).finishes.add(end);
  }

  giveBack(queue: string, token: string): Promise<void> {
    return this.#of(queue).returns.add(token);
  }

  #of(queue: string): Batchers {
    const known = this.#queues.get(queue);
    if (known) return known;
    if (this.#queues.size >= MAX_QUEUES) this.#queues.clear();
    const most: BatchLimits = { items: MAX_BATCH, bytes: MAX_BYTES, parallel: this.store.maxParallelClaims };
    const batchers: Batchers = {
      enqueues: new Batcher((groups) => this.#enqueue(queue, groups), most, sizeOfGroup),
      finishes: new Batcher((ends) => this.#finish(queue, ends), most, sizeOfEnd),
      returns: new Batcher(
        (tokens) => this.#giveBack(queue, tokens),
        most,
        () => 0,
      ),
    };
    this.#queues.set(queue, batchers);
    return batchers;
  }

  async #enqueue(queue: string, groups: TaskGroup[]): Promise<(undefined | Error)[]> {
    const accepted = await this.store.raw.enqueue(queue, groups);
    return accepted.map((one, i) => (one ? undefined : duplicate(queue, groups[i]!)));
  }

  async #finish(queue: string, ends: TaskCompletion[]): Promise<(undefined | Error)[]> {
    const held = await this.store.raw.finish(queue, ends);
    return this.#ended(
      queue,
      ends.map(({ token }) => token),
      held,
    );
  }

  async #giveBack(queue: string, tokens: string[]): Promise<(undefined | Error)[]> {
    const returns = tokens.map((token) => returnLease({ lease: { worker: '', token } }));
    const held = await this.store.settle(queue, returns);
    return this.#ended(queue, tokens, held);
  }

  #ended(queue: string, tokens: readonly string[], held: readonly boolean[]): (undefined | Error)[] {
    this.over(queue, tokens);
    return held.map((one, i) => (one ? undefined : gone(processId(queue, tokens[i]!))));
  }
}

function duplicate(queue: string, { tasks }: TaskGroup): CroreError {
  const which = tasks.length === 1 ? 'an equal unique task' : 'a task equal to one of these';
  return new CroreError('DUPLICATE_TASK', `queue '${queue}': ${which} is waiting or in process`);
}

function sizeOfGroup({ tasks }: TaskGroup): number {
  let bytes = 0;
  for (const task of tasks) bytes += task.length;
  return bytes;
}

function sizeOfEnd({ result }: TaskCompletion): number {
  return result?.length ?? 0;
}
