import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { removeFile } from './local-state.js';

const MOST_MARKS = 1_000;

/**
 * Records which flows without a store are done: such a flow leaves nothing next to its file, and yet `--resume` must
 * not run it again. The mark is a small file in the user's state directory; if it cannot be written, there is no mark.
 */
export class DoneMark {
  readonly #dir = join(process.env.XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'crore', 'flows');
  readonly #path: string;

  /** `description` distinguishes this version of the flow from others. */
  constructor(
    file: string,
    private readonly description: string,
  ) {
    this.#path = join(this.#dir, digest(resolve(file)));
  }

  get isSet(): boolean {
    try {
      return readFileSync(this.#path, 'utf8') === digest(this.description);
    } catch {
      return false;
    }
  }

  set(): void {
    try {
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
      const names = readdirSync(this.#dir);
      if (names.length >= MOST_MARKS) for (const name of names) removeFile(join(this.#dir, name));
      writeFileSync(this.#path, digest(this.description), { mode: 0o600 });
    } catch {
      // The home directory is not writable: a later --resume runs the flow again.
    }
  }

  clear(): void {
    removeFile(this.#path);
  }
}

/**
 * Two short checksums and the length: this loads no module, and nobody gains anything from a collision. Four bytes at a
 * time: with one, it took 4 ms at 500 programs.
 */
function digest(text: string): string {
  const words = new Uint32Array(Math.ceil(Buffer.byteLength(text) / 4));
  Buffer.from(words.buffer).write(text);
  let [a, b] = [0x811c9dc5, 0x9e3779b9];
  for (let i = 0; i < words.length; i++) {
    a = Math.imul(a ^ words[i]!, 0x01000193);
    b = (Math.imul(b, 31) + words[i]!) | 0;
  }
  return [a >>> 0, b >>> 0, text.length].map((sum) => sum.toString(36)).join('-');
}
