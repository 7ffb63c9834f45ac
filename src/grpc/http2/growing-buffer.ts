import type { ByteBudget } from './byte-budget.js';

/** Initial size; it grows with the bytes that arrive, not with the announced length. */
const FIRST_ROOM = 4_096;
const NO_BYTES = Buffer.alloc(0);

/** Collects pieces of any size in one buffer, counted in a budget: many tiny pieces cost no more than their bytes. */
export class GrowingBuffer {
  #buffer = NO_BYTES;
  #length = 0;

  constructor(private readonly budget: ByteBudget) {}

  get length(): number {
    return this.#length;
  }

  /** The bytes collected so far; valid until the next piece. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  append(chunk: Buffer, start: number, end: number): void {
    const length = this.#length + end - start;
    if (length > this.#buffer.length) this.#grow(Math.max(2 * this.#buffer.length, length, FIRST_ROOM));
    chunk.copy(this.#buffer, this.#length, start, end);
    this.#length = length;
  }

  /** Returns the bytes and starts over. */
  take(): Buffer {
    const taken = this.bytes;
    this.clear();
    return taken;
  }

  clear(): void {
    this.budget.release(this.#buffer.length);
    this.#buffer = NO_BYTES;
    this.#length = 0;
  }

  #grow(room: number): void {
    this.budget.take(room - this.#buffer.length);
    const larger = Buffer.allocUnsafeSlow(room);
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}
