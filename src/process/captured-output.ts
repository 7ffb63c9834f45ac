/** How many bytes of a command's output are kept, from its end. */
const KEPT = 65_536;
const NOTHING = Buffer.alloc(0);
/** How much of the output of a failed attempt is kept with its end. */
const LINES = 10;
const BYTES = 4_096;

/** The output of one stream of a command; if there is a mark, up to the mark that the shell prints after the command. */
export class CapturedOutput {
  /** The exit code after the mark, once it has arrived. */
  exit: number | undefined;
  #kept: Buffer = NOTHING;
  #cut = false;

  constructor(private readonly mark?: string) {}

  add(chunk: Buffer): void {
    const all = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk]);
    if (this.mark !== undefined && this.#ends(all, this.mark)) return;
    this.#cut ||= all.length > 2 * KEPT;
    this.#kept = all.length > 2 * KEPT ? Buffer.from(all.subarray(all.length - KEPT)) : all;
  }

  note(text: string): void {
    this.#kept = Buffer.concat([this.#kept, Buffer.from(`${text}\n`)]);
  }

  get text(): string {
    const text = this.#kept.toString();
    return this.#cut ? `…${text}` : text;
  }

  get empty(): boolean {
    return this.#kept.length === 0;
  }

  /** The last line, parsed if it is JSON, else as text; undefined if nothing was printed. */
  get value(): unknown {
    if (this.empty) return undefined;
    const text = this.#kept.toString().replace(/\n+$/, '');
    const line = text.slice(text.lastIndexOf('\n') + 1);
    if (line === '') return undefined;
    try {
      return JSON.parse(line);
    } catch {
      return line;
    }
  }

  /**
   * Whether the mark has arrived with its whole line. Output after it comes from a process that the command left
   * running.
   */
  #ends(all: Buffer, mark: string): boolean {
    const text = all.toString('latin1');
    const at = text.lastIndexOf(mark);
    const end = at < 0 ? -1 : text.indexOf('\n', at);
    if (end < 0) return false;
    this.exit = Number(text.slice(at + mark.length, end));
    this.#kept = at === 0 ? NOTHING : all.subarray(0, at);
    return true;
  }
}

/** The last lines of an output; undefined when there is nothing but space. `…` says that a line lost its start. */
export function lastLines(text: string, most = LINES): string | undefined {
  const tail = text.slice(-2 * BYTES).trimEnd();
  if (tail === '') return undefined;
  const lines = tail.split('\n').slice(-most).join('\n');
  const bytes = Buffer.from(lines);
  if (bytes.length <= BYTES) return lines;
  // A character that was cut in half is left out.
  let start = bytes.length - BYTES + 3;
  while ((bytes[start]! & 0xc0) === 0x80) start++;
  return `…${bytes.subarray(start).toString()}`;
}
