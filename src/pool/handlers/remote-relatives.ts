import type { ChildList } from '../../job/children.js';
import type { BatchCounts, JobRef, Need } from '../../job/job.js';
import type { ChildItem, RelatedJob, Relatives } from '../../worker/relatives.js';
import { unpackError } from '../sent-error.js';
import type { RelativesAnswer, RelativesQuestion } from './handler-messages.js';

interface Waiting {
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/** The relatives of a job whose handler runs here: the worker, which has the connection to the store, is asked. */
export class RemoteRelatives {
  #number = 0;
  readonly #waiting = new Map<number, Waiting>();

  /** For one job; `send` belongs to it. */
  of(send: (question: RelativesQuestion) => void): Relatives {
    const ask = <T>(call: keyof Relatives, ...args: unknown[]) => this.#ask(send, call, args) as Promise<T>;
    return {
      addChildren: (parent, items, first) => ask<Need[]>('addChildren', parent, items.map(sendable), first),
      read: (jobs) => ask<RelatedJob[]>('read', jobs.map(reference)),
      load: (job) => ask<{ children?: ChildList; batch?: BatchCounts }>('load', reference(job)),
    };
  }

  answered(answer: RelativesAnswer): void {
    const waiting = this.#waiting.get(answer.asked);
    this.#waiting.delete(answer.asked);
    if ('failed' in answer) waiting?.reject(unpackError(answer.failed));
    else waiting?.resolve(answer.value);
  }

  #ask(send: (question: RelativesQuestion) => void, call: keyof Relatives, args: unknown[]): Promise<unknown> {
    const number = ++this.#number;
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
      send({ ask: number, call, args });
    });
  }
}

/** A queue cannot be sent; its name can. */
function sendable(item: ChildItem): ChildItem {
  const { queue } = item ?? {};
  return typeof queue === 'object' && queue !== null ? { ...item, queue: queue.name } : item;
}

function reference({ queue, id }: JobRef): JobRef {
  return { queue, id };
}
