import { CallError } from '../status.js';

/**
 * Counts the request bytes held in memory, of unfinished messages and of messages still being processed, per connection; they
 * also count towards the whole server.
 */
export class ByteBudget {
  #used = 0;

  constructor(
    private readonly limit: number,
    private readonly what: string,
    private readonly parent?: ByteBudget,
  ) {}

  /** Throws for a call that needs more than is left. */
  take(bytes: number): void {
    if (this.#used + bytes > this.limit) {
      const text = `requests of ${this.what} use ${this.#used} bytes, ${bytes} more would exceed the limit of ${this.limit}`;
      throw new CallError('RESOURCE_EXHAUSTED', text);
    }
    this.parent?.take(bytes);
    this.#used += bytes;
  }

  /** Nothing more should be read for now. */
  get isFull(): boolean {
    return this.#used >= this.limit || this.parent?.isFull === true;
  }

  /** Counts bytes that are already in memory: the caller must stop reading until there is room again. */
  add(bytes: number): void {
    this.#used += bytes;
    this.parent?.add(bytes);
  }

  release(bytes: number): void {
    this.#used -= bytes;
    this.parent?.release(bytes);
  }
}
