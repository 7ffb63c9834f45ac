/** Callers of a batch that go on at once where the store is elsewhere. */
const WAVE = 50;

interface Caller<Out> {
  resolve: (value: Out) => void;
  reject: (error: unknown) => void;
}

export interface BatchLimits {
  items: number;
  bytes: number;
  /** The store's lanes: with one, calls are synchronous and the fewest batches are the best. */
  lanes: number;
}

/**
 * Calls made one by one in a turn of the event loop go out as one. Batches do not wait for each other: several may be
 * under way, and a failure concerns the calls of its own batch only. A result that is an Error rejects its own call.
 */
export class Batcher<In, Out> {
  #items: In[] = [];
  #callers: Caller<Out>[] = [];
  #bytes = 0;
  #scheduled = false;

  constructor(
    private readonly send: (items: In[]) => Promise<(Out | Error)[]>,
    private readonly most: BatchLimits,
    private readonly size: (item: In) => number,
  ) {}

  add(item: In): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.#items.push(item);
      this.#callers.push({ resolve, reject });
      this.#bytes += this.size(item);
      if (this.#items.length >= this.most.items || this.#bytes >= this.most.bytes) {
        this.#flush();
      } else if (!this.#scheduled) {
        this.#scheduled = true;
        setImmediate(() => this.#flush());
      }
    });
  }

  #flush(): void {
    this.#scheduled = false;
    if (this.#items.length === 0) return;
    const items = this.#items;
    const callers = this.#callers;
    this.#items = [];
    this.#callers = [];
    this.#bytes = 0;
    this.send(items).then(
      (results) => this.#answer(callers, results, 0),
      (error) => {
        for (const { reject } of callers) reject(error);
      },
    );
  }

  /**
   * A hundred loops that call, wait and call again would march in step for ever, and the store stand idle while they think:
   * so they go on in waves, the next one when the calls of the last are on their way.
   */
  #answer(callers: Caller<Out>[], results: (Out | Error)[], from: number): void {
    const isLong = this.most.lanes > 1 && callers.length - from >= 1.5 * WAVE;
    const to = isLong ? from + WAVE : callers.length;
    for (let i = from; i < to; i++) {
      const result = results[i]!;
      if (result instanceof Error) callers[i]!.reject(result);
      else callers[i]!.resolve(result);
    }
    if (isLong) setImmediate(() => setImmediate(() => this.#answer(callers, results, to)));
  }
}
