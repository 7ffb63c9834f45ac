import { CroreError } from '../errors.js';

const LINE_END = 10;

export interface Line {
  /** The first line is 1; empty lines count. */
  number: number;
  bytes: Buffer;
}

/**
 * The lines of a stream as bytes, in groups as they arrive: each line of a piped log gets through at once, and a large file is
 * never held in memory as a whole. Empty lines are left out; a line longer than `limit` is refused before it is read completely.
 */
export async function* lineGroups(input: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Line[]> {
  let rest: Buffer[] = [];
  let length = 0;
  let number = 1;
  for await (const chunk of input) {
    const lines: Line[] = [];
    let from = 0;
    for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, from)) {
      const bytes = Buffer.concat([...rest, chunk.subarray(from, end)]);
      checkLength(bytes.length, limit, number);
      if (bytes.length > 0) lines.push({ number, bytes });
      [rest, length, from] = [[], 0, end + 1];
      number += 1;
    }
    if (from < chunk.length) {
      rest.push(chunk.subarray(from));
      length += chunk.length - from;
      checkLength(length, limit, number);
    }
    if (lines.length > 0) yield lines;
  }
  if (length > 0) yield [{ number, bytes: Buffer.concat(rest) }];
}

function checkLength(length: number, limit: number, number: number): void {
  if (length > limit) {
    throw new CroreError('PAYLOAD_TOO_LARGE', `line ${number} of the input has more than ${limit} bytes`);
  }
}
