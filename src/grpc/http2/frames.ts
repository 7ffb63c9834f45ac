import { CallError } from '../status.js';
import type { ByteBudget } from './byte-budget.js';
import { GrowingBuffer } from './growing-buffer.js';

/** Before each message: a flag for compression and four bytes of length. */
export const HEAD = 5;

export interface FrameRules {
  /** Bytes of a message. */
  limit: number;
  budget: ByteBudget;
  /** Whether messages may be compressed; whoever takes them unpacks them. */
  compressed?: boolean;
}

/**
 * Cuts what arrives into messages. They are handed out where they lie in the chunk, with no copy and no promise each; the head stands
 * in front of each. One that spans chunks is gathered first, and one over the limit is refused before that.
 */
export class FrameReader {
  /** The head and the bytes so far of a message that spans chunks. */
  readonly #partial: GrowingBuffer;

  constructor(
    private readonly rules: FrameRules,
    private readonly take: (buffer: Buffer, start: number, end: number) => void,
  ) {
    this.#partial = new GrowingBuffer(rules.budget);
  }

  /** Something has begun and not ended. */
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

  /** Forgets a message that will not be finished. */
  close(): void {
    this.#partial.clear();
  }

  /** Adds what a chunk has of the message that began before it; says where the next one begins. */
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
      throw new CallError('UNIMPLEMENTED', 'compressed messages are not understood here: send identity');
    return length;
  }
}

/** One message with its head. */
export function frame(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(HEAD + message.length);
  framed[0] = 0;
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, HEAD);
  return framed;
}
