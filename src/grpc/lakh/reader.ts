import { isUtf8 } from 'node:buffer';
import { CallError } from '../status.js';

/**
 * Decodes the messages of the lakh protocol by hand: each message holds one job, so the reflection of a generated codec would
 * account for most of the server's work.
 */
export interface WireTime {
  seconds: number;
  nanos: number;
}

export interface WireJob {
  id: string;
  name: string;
  /** The args as they are stored: a JSON array of texts. */
  args: string;
  delayed: WireTime | undefined;
  scheduled: WireTime | undefined;
  reservation: WireTime | undefined;
}

export interface WireResult {
  id: string;
  name: string;
  ok: boolean;
}

/** The chunk as one Latin-1 text: short ASCII fields are substrings of it, because decoding each would cost a call. */
const seen: { buffer: Buffer | undefined; text: string } = { buffer: undefined, text: '' };
const SHORT = 64;
const MOST_SEEN = 128 * 1024;

/** A cursor over one message. */
class Reader {
  constructor(
    readonly buffer: Buffer,
    public at: number,
    readonly end: number,
  ) {}

  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 10; i++) {
      if (this.at >= this.end) throw malformed();
      const byte = this.buffer[this.at++]!;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw malformed();
  }

  /** A 64-bit two's complement number, exact in the range of times. */
  signed(): number {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (this.at >= this.end) throw malformed();
      const byte = this.buffer[this.at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(BigInt.asIntN(64, value));
    }
    throw malformed();
  }

  /** The end of a length-delimited field that starts here. */
  field(): number {
    const length = this.varint();
    const end = this.at + length;
    if (end > this.end) throw malformed();
    return end;
  }

  text(): string {
    const end = this.field();
    const start = this.at;
    this.at = end;
    for (let i = start; i < end; i++) if (this.buffer[i]! > 127 || i - start === SHORT) return this.#decode(start, end);
    return this.#piece(start, end);
  }

  #piece(start: number, end: number): string {
    const { buffer } = this;
    if (buffer.length > MOST_SEEN) return buffer.toString('latin1', start, end);
    if (seen.buffer !== buffer) {
      seen.buffer = buffer;
      seen.text = buffer.toString('latin1');
    }
    return seen.text.substring(start, end);
  }

  #decode(start: number, end: number): string {
    const text = this.buffer.toString('utf8', start, end);
    // The decoder replaces invalid UTF-8; only then is the text checked again.
    if (text.includes('\ufffd') && !isUtf8(this.buffer.subarray(start, end)))
      throw new CallError('INVALID_ARGUMENT', 'a string in the message is not valid UTF-8');
    return text;
  }

  /** A text that is usually the same as last time, in which case no new string is created. */
  known(last: { text: string; bytes: Buffer }): string {
    const start = this.at;
    const end = this.field();
    const { bytes } = last;
    const from = end - bytes.length;
    if (from === this.at) {
      let i = 0;
      while (i < bytes.length && this.buffer[from + i] === bytes[i]) i++;
      if (i === bytes.length) {
        this.at = end;
        return last.text;
      }
    }
    this.at = start;
    last.text = this.text();
    last.bytes = Buffer.from(last.text);
    return last.text;
  }

  skip(wire: number): void {
    if (wire === 0) this.varint();
    else if (wire === 1) this.at += 8;
    else if (wire === 2) this.at = this.field();
    else if (wire === 5) this.at += 4;
    else throw malformed();
    if (this.at > this.end) throw malformed();
  }

  /** Seconds and nanos of a Duration or Timestamp. */
  time(): WireTime {
    const inner = new Reader(this.buffer, this.at, this.end);
    const end = inner.field();
    const time: WireTime = { seconds: 0, nanos: 0 };
    const within = new Reader(this.buffer, inner.at, end);
    while (within.at < end) {
      const tag = within.varint();
      if (tag === 8) time.seconds = within.signed();
      else if (tag === 16) time.nanos = within.signed();
      else within.skip(tag & 7);
    }
    this.at = end;
    return time;
  }
}

/**
 * Collects args as the JSON array they are stored as. Plain ASCII, the most common case, is copied byte by byte and decoded once
 * at the end; anything else takes the slow path.
 */
class ArgList {
  readonly #bytes = Buffer.alloc(4_096);
  #at = 0;
  #texts: string[] | undefined;

  add(reader: Reader): void {
    const start = reader.at;
    const end = reader.field();
    if (this.#texts === undefined && this.#copy(reader.buffer, reader.at, end)) {
      reader.at = end;
      return;
    }
    reader.at = start;
    this.#texts ??= JSON.parse(this.#written()) as string[];
    this.#texts.push(reader.text());
  }

  /** Returns the array and starts the next one. */
  take(): string {
    const list = this.#texts === undefined ? this.#written() : JSON.stringify(this.#texts);
    this.clear();
    return list;
  }

  clear(): void {
    this.#at = 0;
    this.#texts = undefined;
  }

  #written(): string {
    if (this.#at === 0) return '[]';
    this.#bytes[this.#at] = 0x5d;
    return this.#bytes.toString('latin1', 0, this.#at + 1);
  }

  /** Returns false, without a change, if JSON would escape the text or there is no room. */
  #copy(from: Buffer, start: number, end: number): boolean {
    const bytes = this.#bytes;
    let at = this.#at;
    if (at + (end - start) + 4 > bytes.length) return false;
    bytes[at] = at === 0 ? 0x5b : 0x2c;
    at += 1;
    bytes[at++] = 0x22;
    for (let i = start; i < end; i++) {
      const byte = from[i]!;
      if (byte < 0x20 || byte > 127 || byte === 0x22 || byte === 0x5c) return false;
      bytes[at++] = byte;
    }
    bytes[at++] = 0x22;
    this.#at = at;
    return true;
  }
}

function malformed(): CallError {
  return new CallError('INVALID_ARGUMENT', 'malformed protobuf message');
}

const LENGTH = 2;
const argList = new ArgList();
const lastName = { text: '', bytes: Buffer.alloc(0) };

export function readJob(buffer: Buffer, start: number, end: number): WireJob {
  const reader = new Reader(buffer, start, end);
  const job: WireJob = { id: '', name: '', args: '', delayed: undefined, scheduled: undefined, reservation: undefined };
  argList.clear(); // a refused message may have left something behind
  while (reader.at < end) {
    const tag = reader.varint();
    switch (tag) {
      case (1 << 3) | LENGTH:
        job.id = reader.text();
        break;
      case (2 << 3) | LENGTH:
        job.name = reader.known(lastName);
        break;
      case (3 << 3) | LENGTH:
        argList.add(reader);
        break;
      case (4 << 3) | LENGTH:
        job.delayed = reader.time();
        job.scheduled = undefined;
        break;
      case (5 << 3) | LENGTH:
        job.scheduled = reader.time();
        job.delayed = undefined;
        break;
      case (6 << 3) | LENGTH:
        reader.skip(LENGTH);
        job.delayed = undefined;
        job.scheduled = undefined;
        break;
      case (7 << 3) | LENGTH:
        job.reservation = reader.time();
        break;
      default:
        if (tag < 8) throw malformed();
        reader.skip(tag & 7);
    }
  }
  job.args = argList.take();
  return job;
}

export function readResult(buffer: Buffer, start: number, end: number): WireResult {
  const reader = new Reader(buffer, start, end);
  const result: WireResult = { id: '', name: '', ok: false };
  while (reader.at < end) {
    const tag = reader.varint();
    if (tag === ((1 << 3) | LENGTH)) result.id = reader.text();
    else if (tag === ((2 << 3) | LENGTH)) result.name = reader.known(lastName);
    else if (tag === 3 << 3) result.ok = reader.varint() === 1;
    else if (tag < 8) throw malformed();
    else reader.skip(tag & 7);
  }
  return result;
}
