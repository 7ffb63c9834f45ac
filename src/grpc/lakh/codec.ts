import { isAscii, isUtf8 } from 'node:buffer';
import { HEAD } from '../frames.js';
import { Refusal } from '../status.js';

/**
 * The messages of the lakh protocol, read and written by hand: one job is one message here, so what a generated codec
 * spends on reflection would be most of what the server does.
 */
export interface WireTime {
  seconds: number;
  nanos: number;
}

export interface WireJob {
  id: string;
  name: string;
  args: string[];
  delayed?: WireTime;
  scheduled?: WireTime;
  reservation?: WireTime;
}

export interface WireResult {
  id: string;
  name: string;
  ok: boolean;
}

/** A chunk of plain ASCII as one text: its fields are pieces of that, where decoding each would cost a call. */
const seen: { buffer: Buffer | undefined; text: string } = { buffer: undefined, text: '' };

function look(buffer: Buffer): void {
  seen.buffer = buffer;
  seen.text = isAscii(buffer) ? buffer.toString('latin1') : '';
}

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

  /** A 64-bit two's complement number; exact as far as a time can be. */
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
    if (seen.buffer !== this.buffer) look(this.buffer);
    if (seen.text !== '') return seen.text.substring(start, end);
    const text = this.buffer.toString('utf8', start, end);
    // The decoder replaces what is not UTF-8: only then it is looked at again.
    if (text.includes('\ufffd') && !isUtf8(this.buffer.subarray(start, end)))
      throw new Refusal('INVALID_ARGUMENT', 'a text of the message is not UTF-8');
    return text;
  }

  /** A text that mostly is the same as last time: then no new one is made. */
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

function malformed(): Refusal {
  return new Refusal('INVALID_ARGUMENT', 'the message is not a well-formed protocol buffer of this call');
}

const LENGTH = 2;
const lastName = { text: '', bytes: Buffer.alloc(0) };

export function readJob(buffer: Buffer, start: number, end: number): WireJob {
  const reader = new Reader(buffer, start, end);
  const job: WireJob = { id: '', name: '', args: [] };
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
        job.args.push(reader.text());
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

/** Writes jobs one behind the other, each framed, into one buffer that grows. */
export class JobWriter {
  #buffer = Buffer.allocUnsafe(4_096);
  #at = 0;

  get size(): number {
    return this.#at;
  }

  /** What was written, as a buffer of its own. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#at);
    this.#buffer = Buffer.allocUnsafe(Math.max(4_096, this.#at));
    this.#at = 0;
    return taken;
  }

  add(id: string, name: string, args: readonly string[], reservation: number): void {
    let most = HEAD + 40 + 3 * (id.length + name.length);
    for (const arg of args) most += 6 + 3 * arg.length;
    this.#grow(most);
    const start = this.#at;
    this.#at += HEAD;
    if (id !== '') this.#text((1 << 3) | LENGTH, id);
    if (name !== '') this.#text((2 << 3) | LENGTH, name);
    for (const arg of args) this.#text((3 << 3) | LENGTH, arg);
    if (reservation > 0) this.#duration((7 << 3) | LENGTH, reservation);
    this.#buffer[start] = 0;
    this.#buffer.writeUInt32BE(this.#at - start - HEAD, start + 1);
  }

  /** The same for args in the form they are stored, a JSON array: texts without escapes are copied as they stand. */
  addStored(id: string, name: string, payload: string, reservation: number, parse: () => readonly string[]): void {
    this.#grow(HEAD + 40 + 3 * (id.length + name.length) + 4 * payload.length);
    const start = this.#at;
    this.#at += HEAD;
    if (id !== '') this.#text((1 << 3) | LENGTH, id);
    if (name !== '') this.#text((2 << 3) | LENGTH, name);
    if (!this.#copyList(payload)) {
      this.#at = start;
      this.add(id, name, parse(), reservation);
      return;
    }
    if (reservation > 0) this.#duration((7 << 3) | LENGTH, reservation);
    this.#buffer[start] = 0;
    this.#buffer.writeUInt32BE(this.#at - start - HEAD, start + 1);
  }

  /** One pass over `["…","…"]`; false for anything but short ASCII texts. */
  #copyList(payload: string): boolean {
    const buffer = this.#buffer;
    const last = payload.length - 1;
    if (payload === '[]') return true;
    if (payload.charCodeAt(0) !== 0x5b || payload.charCodeAt(last) !== 0x5d) return false;
    let at = this.#at;
    let i = 1;
    for (;;) {
      if (payload.charCodeAt(i++) !== 0x22) return false;
      buffer[at] = (3 << 3) | LENGTH;
      const length = at + 1;
      at += 2;
      let code = payload.charCodeAt(i++);
      while (code !== 0x22) {
        // an escape, more than ASCII, or the end of the text
        if (code === 0x5c || !(code <= 127)) return false;
        buffer[at++] = code;
        code = payload.charCodeAt(i++);
      }
      const size = at - length - 1;
      if (size > 127) return false;
      buffer[length] = size;
      if (i === last) break;
      if (payload.charCodeAt(i++) !== 0x2c) return false;
    }
    this.#at = at;
    return true;
  }

  #grow(most: number): void {
    if (this.#buffer.length - this.#at >= most) return;
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, this.#at + most));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }

  /** Short ASCII goes in by hand: a call into the runtime costs more than the bytes. */
  #text(tag: number, text: string): void {
    const buffer = this.#buffer;
    buffer[this.#at++] = tag;
    const { length } = text;
    if (length < 64) {
      const start = this.#at;
      buffer[start] = length;
      let i = 0;
      for (; i < length; i++) {
        const code = text.charCodeAt(i);
        if (code > 127) break;
        buffer[start + 1 + i] = code;
      }
      if (i === length) {
        this.#at = start + 1 + length;
        return;
      }
    }
    this.#varint(Buffer.byteLength(text));
    this.#at += buffer.write(text, this.#at, 'utf8');
  }

  #varint(value: number): void {
    let left = value;
    while (left > 127) {
      this.#buffer[this.#at++] = (left % 128) | 128;
      left = Math.floor(left / 128);
    }
    this.#buffer[this.#at++] = left;
  }

  #duration(tag: number, ms: number): void {
    const seconds = Math.floor(ms / 1_000);
    const nanos = (ms % 1_000) * 1_000_000;
    this.#buffer[this.#at++] = tag;
    const length = this.#at++;
    if (seconds > 0) {
      this.#buffer[this.#at++] = 1 << 3;
      this.#varint(seconds);
    }
    if (nanos > 0) {
      this.#buffer[this.#at++] = 2 << 3;
      this.#varint(nanos);
    }
    this.#buffer[length] = this.#at - length - 1;
  }
}
