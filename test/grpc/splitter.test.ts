import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Splitter } from '../../dist/grpc/splitter.js';
import {
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  HEADERS,
  PADDED,
  PREFACE,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
} from './support/wire.js';

interface Sent {
  type: number;
  flags: number;
  id: number;
  size: number;
}

const bytesOf = ({ type, flags, id, size }: Sent, k: number) =>
  frame(type, flags, id, Buffer.alloc(size, 1 + (k % 250)));

/** In hex: texts are compared quickly. */
interface Parted {
  passed: string;
  lifted: Record<number, string>;
}

/** What a splitter makes of these chunks, when calls of these ids are lifted as they open. */
function part(chunks: readonly Buffer[], wanted: readonly number[]): Parted & { rests: number } {
  const passed: Buffer[] = [];
  const lifted: Record<number, string> = {};
  let rests = 0;
  const splitter = new Splitter((bytes) => void passed.push(Buffer.from(bytes)));
  const lift = (id: number) =>
    splitter.lift(id, {
      read: (chunk, start, end) => {
        lifted[id] = (lifted[id] ?? '') + chunk.toString('hex', start, end);
      },
      rest: () => {
        rests += 1;
      },
    });
  for (const chunk of chunks) {
    let rest = chunk;
    do {
      rest = rest.subarray(splitter.take(rest));
      if (splitter.opened) wanted.some(lift);
    } while (rest.length > 0);
  }
  return { passed: Buffer.concat(passed).toString('hex'), lifted, rests };
}

/** The same by the rules, frame by frame. */
function expected(sent: readonly Sent[], wanted: readonly number[]): Parted {
  const passed: Buffer[] = [PREFACE];
  const lifted: Record<number, string> = {};
  const open = new Set<number>();
  let newest = 0;
  let block = 0;
  let opening = 0;
  sent.forEach((one, k) => {
    const { type, flags, id, size } = one;
    const bytes = bytesOf(one, k);
    const data = type === DATA && block === 0;
    if (data && open.has(id) && size > 0 && (flags & ~END_STREAM) === 0 && size <= 16_384) {
      lifted[id] = (lifted[id] ?? '') + bytes.toString('hex', 9);
      if (flags === END_STREAM) {
        open.delete(id);
        passed.push(frame(DATA, END_STREAM, id));
      }
      return;
    }
    passed.push(bytes);
    if (data && size > 0) open.delete(id);
    if (data && (flags & ~END_STREAM) !== 0) open.delete(id);
    if (type === RST_STREAM || type === HEADERS) open.delete(id);
    if (type === HEADERS) {
      opening = id > newest && (flags & END_STREAM) === 0 ? id : 0;
      newest = Math.max(newest, id);
    }
    if (type === HEADERS || type === CONTINUATION) {
      block = (flags & END_HEADERS) === 0 ? id : 0;
      if (block === 0 && opening !== 0) {
        if (wanted.includes(opening)) open.add(opening);
        opening = 0;
      }
    }
  });
  return { passed: Buffer.concat(passed).toString('hex'), lifted };
}

function streamOf(sent: readonly Sent[]): Buffer {
  return Buffer.concat([PREFACE, ...sent.map(bytesOf)]);
}

const story: Sent[] = [
  { type: SETTINGS, flags: 0, id: 0, size: 6 },
  { type: HEADERS, flags: END_HEADERS, id: 1, size: 20 },
  { type: DATA, flags: 0, id: 1, size: 7 },
  { type: DATA, flags: 0, id: 1, size: 9 },
  { type: WINDOW_UPDATE, flags: 0, id: 1, size: 4 },
  { type: HEADERS, flags: 0, id: 3, size: 5 },
  { type: CONTINUATION, flags: END_HEADERS, id: 3, size: 5 },
  { type: DATA, flags: 0, id: 3, size: 3 },
  { type: DATA, flags: 0, id: 1, size: 0 },
  { type: DATA, flags: 0, id: 1, size: 4 },
  { type: HEADERS, flags: END_HEADERS, id: 5, size: 2 },
  { type: DATA, flags: 0, id: 5, size: 3 },
  { type: DATA, flags: END_STREAM, id: 3, size: 6 },
  { type: DATA, flags: 0, id: 3, size: 2 },
  { type: DATA, flags: PADDED, id: 5, size: 8 },
  { type: DATA, flags: 0, id: 5, size: 3 },
  { type: RST_STREAM, flags: 0, id: 1, size: 4 },
  { type: DATA, flags: 0, id: 1, size: 5 },
];

describe('frames are parted into payload of lifted calls and all the rest', () => {
  it('wherever the bytes are cut', () => {
    const bytes = streamOf(story);
    const right = expected(story, [1, 3, 5]);
    expect(Object.keys(right.lifted)).toEqual(['1', '3', '5']);
    for (let i = 0; i <= bytes.length; i++) {
      for (const j of [i + 1, i + 8, i + 30]) {
        const chunks = [bytes.subarray(0, i), bytes.subarray(i, j), bytes.subarray(j)];
        expect(part(chunks, [1, 3, 5]), `cut at ${i} and ${j}`).toMatchObject(right);
      }
    }
    const single = [...bytes].map((byte) => Buffer.from([byte]));
    expect(part(single, [1, 3, 5])).toMatchObject(right);
  });

  it('nothing is parted before a call asks for it', () => {
    expect(part([streamOf(story)], [])).toEqual({ passed: streamOf(story).toString('hex'), lifted: {}, rests: 0 });
  });

  it('a call can be lifted only where it opens', () => {
    const splitter = new Splitter(() => {});
    const sink = { read: () => {}, rest: () => {} };
    const bytes = streamOf(story.slice(0, 3));
    const end = splitter.take(bytes);
    expect(end).toBe(24 + 15 + 29);
    expect(splitter.lift(3, sink)).toBe(false);
    splitter.take(bytes.subarray(end));
    expect(splitter.lift(1, sink)).toBe(false);
  });

  it('a frame longer than was announced is left to the library, and so is what follows', () => {
    const sent = [story[1]!, { type: DATA, flags: 0, id: 1, size: 16_385 }, { type: DATA, flags: 0, id: 1, size: 3 }];
    expect(part([streamOf(sent)], [1])).toMatchObject({ passed: streamOf(sent).toString('hex'), lifted: {} });
  });

  it('data within a header block, which no client may send, is left to the library', () => {
    const sent = [
      story[1]!,
      { type: HEADERS, flags: 0, id: 3, size: 4 },
      { type: DATA, flags: 0, id: 1, size: 3 },
      { type: CONTINUATION, flags: END_HEADERS, id: 3, size: 4 },
      { type: DATA, flags: 0, id: 1, size: 3 },
    ];
    expect(part([streamOf(sent)], [1])).toMatchObject(expected(sent, [1]));
    expect(expected(sent, [1]).lifted[1]).toHaveLength(6);
  });

  it('a sink is told once per chunk that nothing more is at hand', () => {
    const sent = [story[1]!, ...Array.from({ length: 50 }, () => ({ type: DATA, flags: 0, id: 1, size: 10 }))];
    expect(part([streamOf(sent)], [1]).rests).toBe(1);
  });

  it('whatever is sent, each byte goes one way', () => {
    const one = fc.record({
      type: fc.constantFrom(DATA, DATA, DATA, HEADERS, CONTINUATION, RST_STREAM, WINDOW_UPDATE, SETTINGS, 20),
      flags: fc.constantFrom(0, 0, 0, END_STREAM, END_HEADERS, END_HEADERS | END_STREAM, PADDED),
      id: fc.constantFrom(0, 1, 3, 5, 7),
      size: fc.constantFrom(0, 1, 5, 9, 40, 16_384, 16_385),
    });
    const cuts = fc.array(fc.nat(200), { maxLength: 30 });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 25 }), cuts, fc.subarray([1, 3, 5, 7]), (sent, sizes, wanted) => {
        const bytes = streamOf(sent);
        const chunks: Buffer[] = [];
        let at = 0;
        for (const size of sizes) {
          chunks.push(bytes.subarray(at, at + size));
          at += size;
        }
        chunks.push(bytes.subarray(at));
        expect(part(chunks, wanted)).toMatchObject(expected(sent, wanted));
      }),
      { numRuns: 500 },
    );
  });
});
