/**
 * Calls made one by one in a turn of the event loop go out as one. Batches do not wait for each other: several may be
 * under way, and a failure concerns the calls of its own batch only.
 */
export class Batcher<In, Out> {
  #items: In[] = [];
  #waiting: { resolve: (value: Out) => void; reject: (error: unknown) => void }[] = [];
  #bytes = 0;
  #scheduled = false;

  constructor(
    private readonly send: (items: In[]) => Promise<Out[]>,
    private readonly most: { items: number; bytes: number },
    private readonly size: (item: In) => number,
  ) {}

  add(item: In): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.#items.push(item);
      this.#waiting.push({ resolve, reject });
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
    const waiting = this.#waiting;
    this.#items = [];
    this.#waiting = [];
    this.#bytes = 0;
    this.send(items).then(
      (results) => waiting.forEach(({ resolve }, i) => void resolve(results[i]!)),
      (error) => {
        for (const { reject } of waiting) reject(error);
      },
    );
  }
}
