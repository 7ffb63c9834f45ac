import { isDeepStrictEqual } from 'node:util';
import { CroreError } from '../errors.js';
import type { Crore, Queue, QueueOptions } from '../index.js';

/** A queue and its options, as for `crore.queue`. */
export type QueueRegistration = QueueOptions<unknown, unknown> & { name: string };

/** The registered queues. Several modules may register the same one; all of them get the same object. */
export class QueueRegistry {
  readonly #known = new Map<string, { queue: Queue; options: QueueOptions<unknown, unknown> }>();

  constructor(private readonly crore: Crore) {}

  register({ name, ...options }: QueueRegistration): Queue {
    const known = this.#known.get(name);
    if (!known) return this.#add(name, options);
    if (isDeepStrictEqual(known.options, options)) return known.queue;
    // With one of two codecs or schemas, some would add what others cannot read.
    throw new CroreError('BAD_OPTION', `queue '${name}' is registered twice, with different options`);
  }

  get(name: string): Queue | undefined {
    return this.#known.get(name)?.queue;
  }

  #add(name: string, options: QueueOptions<unknown, unknown>): Queue {
    const queue = this.crore.queue(name, options);
    this.#known.set(name, { queue, options });
    return queue;
  }
}
