import { StringDecoder } from 'node:string_decoder';

/** Passes on text in whole lines, so that the lines of several writers do not mix. */
export class WholeLines {
  readonly #decoder = new StringDecoder();
  #rest = '';

  constructor(private readonly pass: (lines: string) => void) {}

  add(chunk: Uint8Array | string): void {
    const text = this.#rest + (typeof chunk === 'string' ? chunk : this.#decoder.write(Buffer.from(chunk)));
    const end = text.lastIndexOf('\n') + 1;
    this.#rest = text.slice(end);
    if (end > 0) this.pass(text.slice(0, end));
  }

  /** Passes on a last line without a line break. */
  end(): void {
    const rest = this.#rest + this.#decoder.end();
    this.#rest = '';
    if (rest !== '') this.pass(`${rest}\n`);
  }
}
