import { groupBy } from '../engine/group-by.js';
import { checkName, checkOneOf, describe } from '../engine/input/check.js';
import { MOST_CHILDREN } from '../engine/input/children.js';
import { decodeValue } from '../engine/input/payload.js';
import { CroreError } from '../errors.js';
import { type ChildList, childId } from '../job/children.js';
import type { BatchCounts, JobRef, Need } from '../job/job.js';
import { MAX_BATCH } from '../store/store.js';
import type { ChildItem, RelatedJob, Relatives } from '../worker/relatives.js';
import type { Handle } from './handle.js';
import { Producer } from './producer.js';
import { type AddManyItem, atItem, type QueueSetup, resolveQueue } from './queue-input.js';

type Target = Pick<Producer<unknown, unknown>, 'addMany'>;
interface Child {
  queue: string;
  target: Target;
  need: Need;
  item: AddManyItem<unknown>;
}

/** Children, and jobs that were needed, in the store of this connection. */
export class StoredRelatives implements Relatives {
  constructor(private readonly queue: QueueSetup) {}

  async addChildren(parent: JobRef, items: readonly ChildItem[], first: number): Promise<Need[]> {
    if (first + items.length > MOST_CHILDREN)
      throw new CroreError('BAD_OPTION', `addChildren: a job can have at most ${MOST_CHILDREN} children`);
    const children = items.map((item, i) => this.#child(parent, item, first + i, i));
    for (const group of groupBy(children, ({ queue }) => queue).values()) await addAll(group);
    return children.map(({ need }) => need);
  }

  async read(jobs: readonly JobRef[]): Promise<RelatedJob[]> {
    const found = new Map<JobRef, RelatedJob>();
    for (const [queue, refs] of groupBy(jobs, (job) => job.queue)) {
      for (let i = 0; i < refs.length; i += MAX_BATCH) {
        const page = refs.slice(i, i + MAX_BATCH);
        for (const [k, one] of (await this.#readPage(queue, page)).entries()) found.set(page[k]!, one);
      }
    }
    return jobs.map((job) => found.get(job)!);
  }

  async load({ queue, id }: JobRef): Promise<{ children?: ChildList; batch?: BatchCounts }> {
    const [job] = await this.queue.engine.store.get(queue, [id]);
    return { ...(job?.children ? { children: job.children } : {}), ...(job?.batch ? { batch: job.batch } : {}) };
  }

  async #readPage(queue: string, refs: readonly JobRef[]): Promise<RelatedJob[]> {
    const ids = refs.map(({ id }) => id);
    const codec = this.queue.codecs.get(queue);
    return (await this.queue.engine.store.get(queue, ids)).map((job, i) => {
      const related: RelatedJob = { queue, id: ids[i]!, state: job?.state };
      if (job?.result !== undefined)
        related.result = decodeValue(job.result, codec, `the result of job '${ids[i]}' of queue '${queue}'`);
      if (job?.error !== undefined) related.error = job.error;
      return related;
    });
  }

  #child(parent: JobRef, child: ChildItem, number: number, index: number): Child {
    if (child === null || typeof child !== 'object' || !('payload' in child))
      throw new CroreError(
        'BAD_OPTION',
        `addChildren, item ${index} must be an object with a payload, not ${describe(child)}`,
      );
    try {
      const { queue = this.queue.name, on = 'success', payload, ...options } = child;
      const isQueue = typeof queue === 'object' && queue !== null && typeof queue.addMany === 'function';
      const name = checkName(isQueue ? queue.name : queue, 'queue name');
      const target = isQueue ? (queue as unknown as Target) : this.#producer(name);
      const id = options.id === undefined ? childId(parent.id, number) : checkName(options.id, 'job id');
      // The record is kept for the parent, and with it the id.
      const own = options.id === undefined ? { idWindow: 0 } : {};
      const need: Need = { queue: name, id, on: checkOneOf<Need['on']>(on, 'on', ['success', 'finished']) };
      return { queue: name, target, need, item: { ...own, ...options, payload, id, parent } as AddManyItem<unknown> };
    } catch (error) {
      throw atItem(error, `addChildren, item ${index}`);
    }
  }

  #producer(name: string): Target {
    if (name === this.queue.name) return new Producer(this.queue);
    const codec = this.queue.codecs.get(name);
    return new Producer(resolveQueue(this.queue, name, codec ? { codec } : {}));
  }
}

async function addAll(children: readonly Child[]): Promise<void> {
  const handles = (await children[0]!.target.addMany(children.map(({ item }) => item))) as Handle<unknown, unknown>[];
  const full = handles.find(({ outcome }) => outcome === 'full');
  if (full) throw new CroreError('QUEUE_FULL', `addChildren: queue '${full.queue}' is full`);
}
