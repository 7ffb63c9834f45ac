import { CallError } from '../status.js';

/** Counts the bytes of unfinished messages that are kept in memory: those of one connection, which also count for the whole server. */
export class ByteBudget {
  #used = 0;

  constructor(
    private readonly limit: number,
    private readonly what: string,
    private readonly parent?: ByteBudget,
  ) {}

  get used(): number {
    return this.#used;
  }

  /** Refuses the call that wants more than is left. */
  take(bytes: number): void {
    if (this.#used + bytes > this.limit) {
      const text = `unfinished messages of ${this.what} take ${this.#used} bytes, ${bytes} more are over the limit of ${this.limit}`;
      throw new CallError('RESOURCE_EXHAUSTED', text);
    }
    this.parent?.take(bytes);
    this.#used += bytes;
  }

  release(bytes: number): void {
    this.#used -= bytes;
    this.parent?.release(bytes);
  }
}
