import { HEAD } from '../http2/frames.js';
import type { ExecutionTime } from './execution-time.js';

const LENGTH = 2;
/** Tags and lengths of all fields except args, and both times. */
const OVERHEAD = HEAD + 80;
const EXECUTION_FIELDS = { delayed: 4, scheduled: 5, immediate: 6 };

/** When a job was requested to run, and how long its report may take (milliseconds, 0 for no report). */
export interface JobTimes {
  execution: ExecutionTime;
  reservation: number;
}

/** Writes framed jobs one after the other into one growing buffer. */
export class JobWriter {
  #buffer = Buffer.allocUnsafe(4_096);
  #at = 0;

  get size(): number {
    return this.#at;
  }

  /** Returns what was written as a separate buffer. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#at);
    this.#buffer = Buffer.allocUnsafe(Math.max(4_096, this.#at));
    this.#at = 0;
    return taken;
  }

  add(id: string, name: string, args: readonly string[], times: JobTimes): void {
    let most = OVERHEAD + 3 * (id.length + name.length);
    for (const arg of args) most += 6 + 3 * arg.length;
    this.#grow(most);
    const start = this.#at;
    this.#at += HEAD;
    if (id !== '') this.#text((1 << 3) | LENGTH, id);
    if (name !== '') this.#text((2 << 3) | LENGTH, name);
    for (const arg of args) this.#text((3 << 3) | LENGTH, arg);
    this.#times(times);
    this.#buffer[start] = 0;
    this.#buffer.writeUInt32BE(this.#at - start - HEAD, start + 1);
  }

  /** The same for args as they are stored, a JSON array: texts without escapes are copied unchanged. */
  addStored(id: string, name: string, payload: string, times: JobTimes, parse: () => readonly string[]): void {
    this.#grow(OVERHEAD + 3 * (id.length + name.length) + 4 * payload.length);
    const start = this.#at;
    this.#at += HEAD;
    if (id !== '') this.#text((1 << 3) | LENGTH, id);
    if (name !== '') this.#text((2 << 3) | LENGTH, name);
    if (!this.#copyList(payload)) {
      this.#at = start;
      this.add(id, name, parse(), times);
      return;
    }
    this.#times(times);
    this.#buffer[start] = 0;
    this.#buffer.writeUInt32BE(this.#at - start - HEAD, start + 1);
  }

  /** Copies `["…","…"]` in one pass; returns false for anything but short ASCII texts. */
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
        // an escape, a non-ASCII character, or the end of the text
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

  /** Copies short ASCII byte by byte: a runtime call costs more than the bytes. */
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

  #times({ execution, reservation }: JobTimes): void {
    const { seconds, nanos } = execution.kind === 'immediate' ? NO_TIME : execution;
    this.#time(EXECUTION_FIELDS[execution.kind], seconds, nanos);
    if (reservation > 0) this.#time(7, Math.floor(reservation / 1_000), (reservation % 1_000) * 1_000_000);
  }

  /** A Duration or Timestamp; with zeros it encodes like Empty. */
  #time(field: number, seconds: number, nanos: number): void {
    this.#buffer[this.#at++] = (field << 3) | LENGTH;
    const length = this.#at++;
    if (seconds !== 0) {
      this.#buffer[this.#at++] = 1 << 3;
      this.#signed(seconds);
    }
    if (nanos !== 0) {
      this.#buffer[this.#at++] = 2 << 3;
      this.#signed(nanos);
    }
    this.#buffer[length] = this.#at - length - 1;
  }

  #signed(value: number): void {
    if (value >= 0) {
      this.#varint(value);
      return;
    }
    let left = BigInt.asUintN(64, BigInt(value));
    while (left > 127n) {
      this.#buffer[this.#at++] = Number(left & 127n) | 128;
      left >>= 7n;
    }
    this.#buffer[this.#at++] = Number(left);
  }
}

const NO_TIME = { seconds: 0, nanos: 0 };
