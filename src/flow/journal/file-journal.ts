import {
  closeSync,
  existsSync,
  fstatSync,
  futimesSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { CroreError, type ErrorCode } from '../../errors.js';
import type { NodeEnd } from '../graph/node-spec.js';
import { namesIn, removeFile } from '../run/local-state.js';
import { decodeEnds, encodeEnds, type FlowInfo, type FlowState, HOLD, NoJournal } from './journal.js';

/** The first line of a file: the flow, and whether this file continues the earlier ones. */
interface Head extends FlowInfo {
  goesOn: boolean;
}

/** The last line of a finished run. */
type Tail = Required<Pick<FlowInfo, 'state' | 'counts' | 'finished'>>;

interface Part {
  head: Head;
  ends: NodeEnd[];
  tail?: Tail;
  /** When its runner last renewed its hold. */
  heard: number;
}

const CODES: Record<string, ErrorCode> = {
  ENOSPC: 'STORE_FULL',
  EDQUOT: 'STORE_FULL',
  EROFS: 'STORE_READONLY',
  EACCES: 'STORE_READONLY',
};

/**
 * The journal of one private flow: text files with one line per write, so that a small flow need not wait for a
 * database. Each runner creates its own file with the next number. Only one runner can create a given number, and the
 * one with the highest number holds the flow. A write is in the file when it returns, so a killed runner loses nothing;
 * an incomplete line is ignored.
 */
export class FileJournal extends NoJournal {
  /** The highest number this runner found, and later its own. */
  #number = 0;
  #file: number | undefined;
  #before: Part[] = [];

  /** `base` is the common prefix of its file names. */
  constructor(private readonly base: string) {
    super();
  }

  override async list(): Promise<FlowInfo[]> {
    const numbers = this.#numbers();
    this.#number = numbers.at(-1) ?? 0;
    try {
      this.#before = numbers.flatMap((number) => readPart(this.#path(number)) ?? []);
    } catch (error) {
      throw translated(error, this.#path(this.#number));
    }
    const last = this.#before.at(-1);
    return last ? [{ ...withoutLink(last.head), ...last.tail }] : [];
  }

  /** Removes the earlier files only now: until here, another runner holds the flow. */
  override async begin(info: FlowInfo): Promise<void> {
    if (!this.#make({ ...info, goesOn: false }))
      throw new CroreError('FLOW_BUSY', `flow '${info.name}' is being run by another process`);
    for (const number of this.#numbers()) if (number < this.#number) removeFile(this.#path(number));
  }

  override async takeOver(_id: string, by: { host: string; pid: number }, dead: boolean): Promise<boolean> {
    const last = this.#before.at(-1);
    if (!last || (isHeld(last) && !dead)) return false;
    return this.#make({ ...last.head, ...by, goesOn: true });
  }

  override async ends(): Promise<NodeEnd[]> {
    const first = this.#before.findLastIndex(({ head }) => !head.goesOn);
    return this.#before.slice(Math.max(0, first)).flatMap(({ ends }) => ends);
  }

  override write(ends: readonly NodeEnd[]): void {
    if (this.#lost) throw new CroreError('LEASE_LOST', 'another runner has taken over this flow');
    this.#append(encodeEnds(ends));
  }

  override async hold(): Promise<'held' | 'lost'> {
    if (this.#lost) return 'lost';
    const now = Date.now() / 1_000;
    futimesSync(this.#file!, now, now);
    return 'held';
  }

  override async finish(state: FlowState, counts: Record<string, number>): Promise<void> {
    if (this.#file === undefined || this.#lost) return;
    this.#append(JSON.stringify({ state, counts, finished: Date.now() } satisfies Tail));
  }

  override async isHeld(): Promise<boolean> {
    const last = this.#before.at(-1);
    return last !== undefined && isHeld(last);
  }

  /** Removes all files of the flow. */
  drop(): void {
    for (const number of this.#numbers()) removeFile(this.#path(number));
  }

  override async close(): Promise<void> {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  get #lost(): boolean {
    return existsSync(this.#path(this.#number + 1));
  }

  #path(number: number): string {
    return `${this.base}${number}`;
  }

  #numbers(): number[] {
    const start = basename(this.base);
    const names = namesIn(dirname(this.base)).filter((name) => name.startsWith(start));
    const numbers = names.map((name) => name.slice(start.length)).filter((text) => /^\d+$/.test(text));
    return numbers.map(Number).sort((a, b) => a - b);
  }

  /** Creates the file with the next number, including its first line, atomically; false when another runner was faster. */
  #make(head: Head): boolean {
    const path = this.#path(this.#number + 1);
    const unpublished = `${path}.${head.pid}`;
    try {
      // Another flow in the same folder may just have removed it because it was empty.
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      this.#file = openSync(unpublished, 'w', 0o600);
      this.#append(JSON.stringify(head));
      this.#publish(unpublished, path, head);
      this.#number++;
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw translated(error, this.#path(this.#number));
    } finally {
      removeFile(unpublished);
    }
  }

  /**
   * Fails if the name is taken. Some file systems do not support links: there, the first line appears shortly after the
   * name.
   */
  #publish(unpublished: string, path: string, head: Head): void {
    try {
      linkSync(unpublished, path);
    } catch (error) {
      if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes((error as NodeJS.ErrnoException).code ?? ''))
        throw error;
      closeSync(this.#file!);
      this.#file = openSync(path, 'ax', 0o600);
      this.#append(JSON.stringify(head));
    }
  }

  #append(line: string): void {
    const text = `${line}\n`;
    try {
      let at = writeSync(this.#file!, text);
      if (at === Buffer.byteLength(text)) return;
      const bytes = Buffer.from(text);
      while (at < bytes.length) at += writeSync(this.#file!, bytes, at);
    } catch (error) {
      throw translated(error, this.#path(this.#number));
    }
  }
}

function translated(error: unknown, path: string): CroreError {
  if (error instanceof CroreError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  return new CroreError(CODES[code ?? ''] ?? 'STORE_UNREACHABLE', `${path}: ${message}`, { cause: error });
}

function isHeld({ tail, heard }: Part): boolean {
  return tail === undefined && heard + HOLD >= Date.now();
}

function withoutLink({ goesOn: _, ...info }: Head): FlowInfo {
  return info;
}

/** Undefined if even the first line is missing. An unreadable line was not written completely: its nodes run again. */
function readPart(path: string): Part | undefined {
  let part: Part | undefined;
  const file = openSync(path, 'r');
  try {
    for (const line of linesOf(file)) {
      const value = parse(line);
      if (value === undefined) break;
      if (!part) part = { head: value as Head, ends: [], heard: fstatSync(file).mtimeMs };
      else if (Array.isArray(value)) part.ends.push(...decodeEnds(value));
      else part.tail = value as Tail;
    }
  } finally {
    closeSync(file);
  }
  return part;
}

function parse(line: string): object | undefined {
  try {
    return JSON.parse(line) as object;
  } catch {
    return undefined;
  }
}

/** Yields complete lines, reading in chunks: the whole file may exceed the maximum string length. */
function* linesOf(file: number): Generator<string> {
  const piece = Buffer.allocUnsafe(1_048_576);
  let rest: Buffer = Buffer.alloc(0);
  for (let read = readSync(file, piece); read > 0; read = readSync(file, piece)) {
    const bytes = Buffer.concat([rest, piece.subarray(0, read)]);
    let start = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      yield bytes.toString('utf8', start, end);
      start = end + 1;
    }
    rest = bytes.subarray(start);
  }
}
