import type { Output } from '../../flow/report/screen.js';
import { WholeLines } from '../../process/whole-lines.js';

/**
 * Combines the output of one turn of the event loop into one write. Opens the stream on first use, so a quiet flow opens none.
 */
export class Gathered implements Output {
  #pending = '';
  #stream: NodeJS.WriteStream | undefined;
  #write: (text: string) => void = () => {};

  constructor(private readonly name: 'stdout' | 'stderr') {}

  get live(): boolean {
    return this.#open().isTTY === true && process.env.TERM !== 'dumb';
  }

  get colours(): boolean {
    return this.live && !process.env.NO_COLOR;
  }

  columns(): number {
    return this.#open().columns || 80;
  }

  write(text: string): void {
    if (this.#pending === '') setImmediate(() => this.flush());
    this.#pending += text;
  }

  flush(): void {
    if (this.#pending === '') return;
    const text = this.#pending;
    this.#pending = '';
    this.#open();
    this.#write(text);
  }

  #open(): NodeJS.WriteStream {
    if (this.#stream) return this.#stream;
    const stream = process[this.name].on('error', () => {});
    this.#stream = stream;
    this.#write = stream.write.bind(stream); // its own, also while the stream is diverted
    return stream;
  }
}

/**
 * Takes over what functions write to a terminal, in whole lines, so that it does not mix with the status line there.
 * Returns a function that ends this.
 */
export function divert(print: (lines: string) => void): () => void {
  const streams = [process.stdout, process.stderr].filter(({ isTTY }) => isTTY);
  const undo = streams.map((stream) => {
    const { write } = stream;
    const lines = new WholeLines(print);
    stream.write = (chunk: string | Uint8Array, encoding?: unknown, done?: unknown): boolean => {
      lines.add(typeof chunk === 'string' ? chunk : Buffer.from(chunk));
      const called = typeof encoding === 'function' ? encoding : done;
      if (typeof called === 'function') process.nextTick(called as () => void);
      return true;
    };
    return () => {
      stream.write = write;
      lines.end();
    };
  });
  return () => {
    for (const one of undo) one();
  };
}
