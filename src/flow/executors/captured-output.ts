/** Bytes kept of what a command prints: the end of it. */
const KEPT = 65_536;
const NOTHING = Buffer.alloc(0);

/** What came out of one stream of a command; of the stream that has a mark, up to the mark that the shell prints behind it. */
export class CapturedOutput {
  /** The number behind the mark, once it has come. */
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

  /** The last line: JSON where it is JSON, else its text; undefined where nothing was printed. */
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

  /** Whether the mark is there with its whole line. What stands behind comes from something that was left running. */
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
