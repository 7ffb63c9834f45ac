import type { Arg } from '../connection/client.js';

/**
 * MessagePack for lists of strings: the subset that our scripts exchange with us through the server's own `cmsgpack`.
 * One packed argument instead of hundreds saves both sides an object for each (measured: a third of the client's time
 * per job, a fifth of the server's).
 */

const STR32 = 0xdb;
const ARRAY32 = 0xdd;
const HEAD = 5;
let scratch: Buffer = Buffer.allocUnsafe(65_536);

/** Packs strings and bytes into one argument. */
export function pack(items: readonly Arg[]): Buffer {
  let at = header(scratch, 0, ARRAY32, items.length);
  for (const item of items) {
    const most = HEAD + (typeof item === 'string' ? item.length * 3 : item.length);
    if (at + most > scratch.length) scratch = grown(scratch, at, most);
    const size = typeof item === 'string' ? scratch.write(item, at + HEAD) : item.copy(scratch, at + HEAD);
    header(scratch, at, STR32, size);
    at += HEAD + size;
  }
  const packed = Buffer.from(scratch.subarray(0, at));
  if (scratch.length > 4_194_304) scratch = Buffer.allocUnsafe(65_536);
  return packed;
}

function header(buffer: Buffer, at: number, tag: number, size: number): number {
  buffer[at] = tag;
  buffer[at + 1] = size >>> 24;
  buffer[at + 2] = size >>> 16;
  buffer[at + 3] = size >>> 8;
  buffer[at + 4] = size;
  return at + HEAD;
}

function grown(buffer: Buffer, used: number, more: number): Buffer {
  const bigger = Buffer.allocUnsafe(Math.max(buffer.length * 2, used + more));
  buffer.copy(bigger, 0, 0, used);
  return bigger;
}

/**
 * Calls `each` with the start and end of every string in a packed list; -1, -1 for one that is missing. The list begins
 * at `from`; returns where it ends.
 */
export function unpack(
  buffer: Buffer,
  each: (start: number, end: number, index: number, count: number) => void,
  from = 0,
): number {
  let at = from + 1;
  let count = buffer[from]! & 0x0f;
  if (buffer[from] === 0xdc) {
    count = buffer.readUInt16BE(from + 1);
    at = from + 3;
  } else if (buffer[from] === ARRAY32) {
    count = buffer.readUInt32BE(from + 1);
    at = from + HEAD;
  }
  for (let index = 0; index < count; index++) {
    const tag = buffer[at]!;
    let size = tag & 0x1f;
    let start = at + 1;
    if (tag === 0xc0 || tag === 0xc2) {
      each(-1, -1, index, count);
      at += 1;
      continue;
    }
    if (tag === 0xd9) {
      size = buffer[at + 1]!;
      start = at + 2;
    } else if (tag === 0xda) {
      size = buffer.readUInt16BE(at + 1);
      start = at + 3;
    } else if (tag === STR32) {
      size = buffer.readUInt32BE(at + 1);
      start = at + HEAD;
    }
    at = start + size;
    // What others wrote may promise four billion elements.
    if (!(at <= buffer.length)) throw new RangeError('packed elements are cut off');
    each(start, at, index, count);
  }
  return at;
}
