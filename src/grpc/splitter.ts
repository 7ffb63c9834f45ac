/** Where the payload of lifted DATA frames goes. */
export interface Sink {
  /** A piece of the payload, where it lies in the chunk. */
  read(chunk: Buffer, start: number, end: number): void;
  /** Nothing more for this sink is at hand. */
  rest(): void;
}

const PREFACE = 24;
const HEAD = 9;
const [DATA, HEADERS, RST_STREAM, CONTINUATION] = [0, 1, 3, 9];
const END_STREAM = 1;
const END_HEADERS = 4;
/** What we have not announced otherwise; a longer frame is for the library to refuse. */
const MOST_FRAME = 16_384;

/**
 * Goes through the frames a client sends and parts them in two: payload of DATA frames of lifted streams goes to their sinks, all
 * else is passed on as it came. Knows lengths and flags of frames, and nothing of what is in them.
 */
export class Splitter {
  readonly #sinks = new Map<number, Sink>();
  readonly #touched = new Set<Sink>();
  /** A frame's head that was cut by the end of a chunk. */
  readonly #head = Buffer.alloc(HEAD);
  #held = 0;
  /** Bytes of the preface or of the current frame that are still to come, and where they go. */
  #left = PREFACE;
  #sink: Sink | undefined;
  /** The stream that the current lifted frame ends. */
  #ending = 0;
  /** The stream whose header block is under way: nothing may come in between. */
  #block = 0;
  #opening = false;
  #newest = 0;
  #fresh = 0;

  constructor(private readonly pass: (bytes: Buffer) => void) {}

  /** From now on the payload of this stream goes to the sink; false if some of it may have gone the other way. */
  lift(id: number, sink: Sink): boolean {
    if (id !== this.#fresh) return false;
    this.#sinks.set(id, sink);
    return true;
  }

  /** What comes from now on goes the ordinary way. */
  drop(id: number): void {
    this.#sinks.delete(id);
  }

  /** It stands behind the headers of a new stream, which may be lifted now, before anything else is taken. */
  get opened(): boolean {
    return this.#fresh !== 0;
  }

  /** Takes a chunk up to its end, or up to the end of the headers of a new stream; says how far it came. */
  take(chunk: Buffer): number {
    this.#fresh = 0;
    const end = this.#split(chunk);
    for (const sink of this.#touched) sink.rest();
    this.#touched.clear();
    return end;
  }

  #split(chunk: Buffer): number {
    const { length } = chunk;
    let at = 0;
    /** Start of what is to be passed. */
    let from = 0;
    while (at < length) {
      if (this.#left > 0) {
        const end = Math.min(at + this.#left, length);
        this.#left -= end - at;
        if (this.#sink) {
          this.#give(chunk, at, end);
          from = end;
        }
        at = end;
        if (this.#left > 0 || !this.#ended()) continue;
        this.#passOn(chunk, from, at);
        return at;
      }
      if (this.#held > 0 || length - at < HEAD) {
        // Held back until it is known where the frame goes.
        this.#passOn(chunk, from, at);
        const end = Math.min(at + HEAD - this.#held, length);
        chunk.copy(this.#head, this.#held, at, end);
        this.#held += end - at;
        at = end;
        from = end;
        if (this.#held < HEAD) return length;
        this.#held = 0;
        this.#begin(this.#head, 0);
        if (!this.#sink) this.pass(Buffer.from(this.#head));
      } else {
        const lifted = this.#begin(chunk, at);
        if (lifted) this.#passOn(chunk, from, at);
        at += HEAD;
        if (lifted) from = at;
      }
      if (this.#left === 0 && this.#ended()) {
        this.#passOn(chunk, from, at);
        return at;
      }
    }
    this.#passOn(chunk, from, length);
    return length;
  }

  /** Reads a head; whether the frame is lifted. */
  #begin(bytes: Buffer, at: number): boolean {
    const size = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
    const type = bytes[at + 3]!;
    const flags = bytes[at + 4]!;
    const id = bytes.readUInt32BE(at + 5) & 0x7fffffff;
    this.#left = size;
    this.#sink = undefined;
    if (type === DATA && this.#block === 0) {
      const sink = this.#sinks.get(id);
      if (!sink) return false;
      // An empty frame has nothing to lift. A padded or overlong one, which nobody sends, ends the lifting.
      if (size > MOST_FRAME || (flags & ~END_STREAM) !== 0) this.drop(id);
      else if (size > 0) {
        this.#sink = sink;
        this.#ending = flags === END_STREAM ? id : 0;
        return true;
      }
    } else if (type === HEADERS || type === CONTINUATION) this.#headers(type, flags, id);
    else if (type === RST_STREAM) this.drop(id);
    return false;
  }

  #headers(type: number, flags: number, id: number): void {
    if (type === HEADERS) {
      this.drop(id); // those of a stream that is open are its trailers
      this.#opening = id > this.#newest && (flags & END_STREAM) === 0;
      if (id > this.#newest) this.#newest = id;
    }
    this.#block = (flags & END_HEADERS) === 0 ? id : 0;
  }

  #give(chunk: Buffer, start: number, end: number): void {
    this.#touched.add(this.#sink!);
    this.#sink!.read(chunk, start, end);
  }

  /** The current frame is complete; whether it was the last of the headers of a new stream. */
  #ended(): boolean {
    if (this.#sink) {
      this.#sink = undefined;
      if (this.#ending !== 0) this.#end(this.#ending);
      return false;
    }
    if (!this.#opening || this.#block !== 0) return false;
    this.#opening = false;
    this.#fresh = this.#newest;
    return true;
  }

  /** The end of a lifted stream is told by an empty frame. */
  #end(id: number): void {
    this.drop(id);
    this.#ending = 0;
    const frame = Buffer.alloc(HEAD);
    frame[4] = END_STREAM;
    frame.writeUInt32BE(id, 5);
    this.pass(frame);
  }

  #passOn(chunk: Buffer, start: number, end: number): void {
    if (end > start) this.pass(start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end));
  }
}
