export type Colour = 'red' | 'green' | 'yellow' | 'cyan' | 'dim';
export type Paint = (text: string, colour: Colour) => string;

/** Where a report for people goes. */
export interface Output {
  write(text: string): void;
  /** It is a terminal on which a line can be replaced. */
  readonly live: boolean;
  readonly colours: boolean;
  /** The width of the terminal. */
  columns(): number;
}

const CODES: Record<Colour, number> = { red: 31, green: 32, yellow: 33, cyan: 36, dim: 2 };
const ERASE = '\r\x1b[K';
const PLAIN = '\x1b[0m';

/** Lines that stay, and below them, on a terminal, one line of status that is replaced. */
export class Screen {
  #status = '';

  constructor(private readonly output: Output) {}

  get live(): boolean {
    return this.output.live;
  }

  /** The last column stays free, because some terminals start a new line when it is filled. */
  get columns(): number {
    return this.output.columns() - 1;
  }

  readonly paint: Paint = (text, colour) =>
    this.output.colours && text !== '' ? `\x1b[${CODES[colour]}m${text}${PLAIN}` : text;

  /** Prints whole lines above the status. */
  print(lines: string): void {
    if (this.#status === '') {
      this.output.write(lines);
      return;
    }
    // Colours that a command has left switched on end with its output.
    const end = lines.includes('\x1b') ? PLAIN : '';
    this.output.write(`${ERASE}${lines}${end}${this.#status}`);
  }

  /** Replaces the status; empty: there is none. */
  status(text: string): void {
    if (text === this.#status) return;
    this.#status = text;
    this.output.write(`${ERASE}${text}`);
  }
}
