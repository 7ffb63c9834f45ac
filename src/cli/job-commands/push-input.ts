import { fstatSync } from 'node:fs';
import { CroreError, isCroreError } from '../../errors.js';
import { lineGroups } from '../input-lines.js';
import { Progress } from '../progress.js';
import { argumentBytes } from './job-options.js';

/** The library's limit for a payload. */
const LONGEST = 1_048_576;

/** Payloads that are added together. */
export type Groups<T> = Iterable<T[]> | AsyncIterable<T[]>;
/** Turns bytes into a payload, or throws an error that names it by `what`. */
type Read<T> = (bytes: Buffer, what: string) => T;

/** How far a push has come. */
export interface Tally {
  added: number;
  /** The last line whose group was added. */
  line: number;
}

/** The payloads of the command line, which are all read before anything is added; without any, the lines of standard input. */
export function inputGroups<T>(payloads: readonly string[], read: Read<T>, tally: Tally): Groups<T> {
  if (payloads.length === 0) return watched(fromLines(process.stdin, read, tally));
  const nameOf = (i: number) => (payloads.length > 1 ? `payload ${i + 1}` : 'the payload');
  return [payloads.map((text, i) => read(argumentBytes(text), nameOf(i)))];
}

/** Shows how many payloads have been added: a group is, once the next one is asked for. */
async function* watched<T>(groups: AsyncIterable<T[]>): AsyncGenerator<T[]> {
  const progress = new Progress();
  const size = Progress.isWatched ? inputSize() : undefined;
  let done = 0;
  try {
    for await (const group of groups) {
      yield group;
      done += group.length;
      progress.report(done, size && process.stdin.bytesRead / size);
    }
  } finally {
    progress.end();
  }
}

/** How many bytes standard input has, if it is a file. */
function inputSize(): number | undefined {
  const stat = fstatSync(process.stdin.fd);
  return stat.isFile() && stat.size > 0 ? stat.size : undefined;
}

/** A line that cannot be read refuses its whole group; the error says what was added before. */
async function* fromLines<T>(input: AsyncIterable<Buffer>, read: Read<T>, tally: Tally): AsyncGenerator<T[]> {
  for await (const lines of lineGroups(input, LONGEST)) {
    let group: T[];
    try {
      group = lines.map(({ number, bytes }) => read(bytes, `line ${number} of the input`));
    } catch (error) {
      throw withTally(error, tally);
    }
    yield group;
    tally.line = lines.at(-1)!.number;
  }
}

function withTally(error: unknown, { added, line }: Tally): unknown {
  if (!isCroreError(error)) return error;
  const jobs = added === 1 ? '1 job was' : `${added} jobs were`;
  const before = added === 0 ? 'nothing was added' : `${jobs} added before, from the lines up to ${line}`;
  return new CroreError(error.code, `${error.message} (${before})`, { cause: error });
}
