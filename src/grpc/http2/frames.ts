import { CallError } from '../status.js';
import type { ByteBudget } from './byte-budget.js';
import { GrowingBuffer } from './growing-buffer.js';

/** Header of each message: a compression flag and four bytes of length. */
export const HEAD = 5;

export interface FrameRules {
  /** Maximum bytes of a message. */
  limit: number;
  budget: ByteBudget;
  /** Whether messages may be compressed; the receiver decompresses them. */
  compressed?: boolean;
}

/**
 * Splits incoming data into messages. They are passed on in place, as parts of the chunk with their header in front, without a
 * copy or a promise each. A message that spans chunks is assembled first, and one over the limit is refused before that.
 */
export class FrameReader {
  /** The header and the bytes so far of a message that spans chunks. */
  readonly #partial: GrowingBuffer;

  constructor(
    private readonly rules: FrameRules,
    private readonly take: (buffer: Buffer, start: number, end: number) => void,
  ) {
    this.#partial = new GrowingBuffer(rules.budget);
  }

  /** Whether a message has begun and not ended. */
  get partial(): boolean {
    return this.#partial.length > 0;
  }

  read(chunk: Buffer): void {
    let at = this.partial ? this.#complete(chunk) : 0;
    while (chunk.length - at >= HEAD) {
      const next = at + HEAD + this.#lengthAt(chunk, at);
      if (next > chunk.length) break;
      this.take(chunk, at + HEAD, next);
      at = next;
    }
    if (at < chunk.length) this.#partial.append(chunk, at, chunk.length);
  }

  /** Drops a message that will not be finished. */
  close(): void {
    this.#partial.clear();
  }

  /** Adds a chunk's part of the message that began before it; returns where the next one begins. */
  #complete(chunk: Buffer): number {
    const partial = this.#partial;
    const head = Math.min(Math.max(0, HEAD - partial.length), chunk.length);
    partial.append(chunk, 0, head);
    if (partial.length < HEAD) return head;
    const size = HEAD + this.#lengthAt(partial.bytes, 0);
    const end = Math.min(head + size - partial.length, chunk.length);
    partial.append(chunk, head, end);
    if (partial.length === size) this.take(partial.take(), HEAD, size);
    return end;
  }

  #lengthAt(chunk: Buffer, at: number): number {
    const { limit, compressed } = this.rules;
    const length = chunk.readUInt32BE(at + 1);
    if (length > limit) {
      throw new CallError('RESOURCE_EXHAUSTED', `a message of ${length} bytes is over the limit of ${limit}`);
    }
    if (chunk[at] !== 0 && !compressed)
      throw new CallError('UNIMPLEMENTED', 'compressed messages are not supported: use identity');
    return length;
  }
}

/** One message with its header. */
export function frame(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(HEAD + message.length);
  framed[0] = 0;
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, HEAD);
  return framed;
}
