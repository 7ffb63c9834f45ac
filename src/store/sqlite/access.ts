import type { Committer } from './file/committer.js';
import { translate } from './file/failure.js';
import type { Tables } from './tables.js';

/**
 * How the parts of the store reach a queue in the file: writes join the shared transaction of this turn of the event loop. Queue
 * numbers are not cached, because another process may have removed an empty queue.
 */
export class QueueAccess {
  constructor(
    readonly tables: Tables,
    readonly committer: Committer,
    readonly now: () => number,
    /** Throws if the file is no longer at its path. */
    private readonly check: () => void,
    private readonly shown: string,
  ) {}

  /** Creates the queue if it is missing. */
  write<T>(queue: string, work: (queue: number) => T): Promise<T> {
    return this.committer.run(() => work(this.tables.ensure(queue)));
  }

  /** For calls that add nothing: `nothing` is the answer of a missing queue. */
  update<T>(queue: string, nothing: T, work: (queue: number) => T): Promise<T> {
    return this.committer.run(() => this.#find(queue, nothing, work));
  }

  read<T>(queue: string, nothing: T, work: (queue: number) => T): Promise<T> {
    return this.readAll(() => this.#find(queue, nothing, work));
  }

  /** Reads something that belongs to no single queue. */
  async readAll<T>(work: () => T): Promise<T> {
    try {
      this.check();
      return work();
    } catch (error) {
      throw translate(error, this.shown);
    }
  }

  #find<T>(queue: string, nothing: T, work: (queue: number) => T): T {
    const number = this.tables.find(queue);
    return number === undefined ? nothing : work(number);
  }
}
