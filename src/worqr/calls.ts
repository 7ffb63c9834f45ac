import { Batcher } from '../engine/batcher.js';
import { givenBack } from '../engine/sweeper.js';
import type { HandStore, TaskEnd, TaskGroup } from '../store/raw.js';
import { MAX_BATCH } from '../store/store.js';

/** Bytes of a batch after which it goes out early. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Queues whose batchers are kept at hand. */
const MAX_QUEUES = 10_000;

/** Calls made one by one go to the store together, per queue and verb. */
export class Calls {
  readonly #enqueues = new Map<string, Batcher<TaskGroup, boolean>>();
  readonly #finishes = new Map<string, Batcher<TaskEnd, boolean>>();
  readonly #returns = new Map<string, Batcher<string, boolean>>();

  constructor(private readonly store: HandStore) {}

  enqueue(queue: string, group: TaskGroup): Promise<boolean> {
    const send = (groups: TaskGroup[]) => this.store.raw.enqueue(queue, groups);
    return batcherOf(this.#enqueues, queue, send, sizeOfGroup).add(group);
  }

  finish(queue: string, end: TaskEnd): Promise<boolean> {
    const send = (ends: TaskEnd[]) => this.store.raw.finish(queue, ends);
    return batcherOf(this.#finishes, queue, send, sizeOfEnd).add(end);
  }

  giveBack(queue: string, token: string): Promise<boolean> {
    const send = (tokens: string[]) =>
      this.store.settle(
        queue,
        tokens.map((one) => givenBack({ worker: '', token: one })),
      );
    return batcherOf(this.#returns, queue, send, () => 0).add(token);
  }
}

function batcherOf<In, Out>(
  batchers: Map<string, Batcher<In, Out>>,
  queue: string,
  send: (items: In[]) => Promise<Out[]>,
  size: (item: In) => number,
): Batcher<In, Out> {
  const known = batchers.get(queue);
  if (known) return known;
  if (batchers.size >= MAX_QUEUES) batchers.clear();
  const batcher = new Batcher<In, Out>(send, { items: MAX_BATCH, bytes: MAX_BYTES }, size);
  batchers.set(queue, batcher);
  return batcher;
}

function sizeOfGroup({ tasks }: TaskGroup): number {
  let bytes = 0;
  for (const task of tasks) bytes += task.length;
  return bytes;
}

function sizeOfEnd({ result }: TaskEnd): number {
  return result?.length ?? 0;
}
