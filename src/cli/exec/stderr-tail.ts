import type { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';

/** Bytes of standard error that are kept for the history of attempts. */
const MOST = 4_096;
/** Turns of the event loop to wait for what a child wrote just before it exited. */
const TURNS = 3;

/** Passes the standard error of a child on to ours, and remembers its end. */
export class StderrTail {
  #tail = Buffer.alloc(0);

  constructor(stream: Readable) {
    stream.on('error', () => {});
    stream.on('data', (chunk: Buffer) => {
      process.stderr.write(chunk);
      this.#tail = Buffer.concat([this.#tail, chunk]).subarray(-MOST);
    });
  }

  /** The last lines; whole ones, unless there is only one. What the child left behind may still hold the pipe open. */
  async text(): Promise<string> {
    for (let i = 0; i < TURNS; i++) await turn();
    const text = this.#tail.toString().trimEnd();
    const isCut = this.#tail.length === MOST;
    return isCut && text.includes('\n') ? text.slice(text.indexOf('\n') + 1) : text;
  }
}
