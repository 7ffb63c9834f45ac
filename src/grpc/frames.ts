import { Refusal } from './status.js';

/** Before each message: a flag for compression and four bytes of length. */
export const HEAD = 5;

/**
 * Cuts what arrives into messages. They are handed out where they lie in the chunk, with no copy and no promise each; the
 * one that spans chunks is put together first. A message over the limit is refused before it is gathered.
 */
export class FrameReader {
  #parts: Buffer[] = [];
  #held = 0;
  #needed = 0;

  constructor(
    private readonly limit: number,
    private readonly take: (buffer: Buffer, start: number, end: number) => void,
  ) {}

  /** Something has begun and not ended. */
  get partial(): boolean {
    return this.#held > 0;
  }

  read(chunk: Buffer, start: number, end: number): void {
    if (this.#held === 0) {
      this.#cut(chunk, start, end);
      return;
    }
    this.#parts.push(chunk.subarray(start, end));
    this.#held += end - start;
    if (this.#held < this.#needed) return;
    const whole = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#held = 0;
    this.#cut(whole, 0, whole.length);
  }

  #cut(chunk: Buffer, start: number, end: number): void {
    let at = start;
    while (end - at >= HEAD) {
      const next = at + HEAD + this.#lengthAt(chunk, at);
      if (next > end) break;
      this.take(chunk, at + HEAD, next);
      at = next;
    }
    if (at === end) return;
    this.#needed = end - at < HEAD ? HEAD : HEAD + this.#lengthAt(chunk, at);
    this.#held = end - at;
    this.#parts = [chunk.subarray(at, end)];
  }

  #lengthAt(chunk: Buffer, at: number): number {
    const length = chunk.readUInt32BE(at + 1);
    if (length > this.limit) {
      throw new Refusal('RESOURCE_EXHAUSTED', `a message of ${length} bytes is over the limit of ${this.limit}`);
    }
    if (chunk[at] !== 0)
      throw new Refusal('UNIMPLEMENTED', 'compressed messages are not understood here: send identity');
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
