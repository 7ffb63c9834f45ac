import { showItem } from '../process/log.js';

/** Prints text; a closed reader, as after `| head -1`, is not an error. */
export function print(text: string): void {
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => {});
  process.stdout.write(text);
}

export interface Column<Row> {
  title: string;
  of: (row: Row) => string | number;
  /** The colour on a terminal that supports colours. */
  colour?: (row: Row) => Colour | undefined;
}

export type Colour = 'red' | 'green' | 'yellow' | 'dim';
const CODES: Record<Colour, number> = { red: 31, green: 32, yellow: 33, dim: 2 };

/** The output of a command: one JSON object per line for programs, short aligned text for people. */
export class Output {
  /** The reader is gone, as after `| head -1`: commands that only list may stop, others continue silently. */
  closed = false;
  readonly #colours = process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb';

  constructor(readonly json: boolean) {
    process.stdout.on('error', () => {
      this.closed = true;
    });
  }

  /** Prints one item, as an object or as a line of text. */
  say(object: object, text: string): void {
    this.write(this.json ? JSON.stringify(object) : text);
  }

  write(line: string): void {
    if (!this.closed) process.stdout.write(`${line}\n`);
  }

  /** Prints a note for people that is not part of the output; programs find it in the objects. */
  remark(text: string): void {
    if (!this.json) process.stderr.write(`crore: ${text}\n`);
  }

  paint(text: string, colour: Colour | undefined): string {
    return this.#colours && colour ? `\x1b[${CODES[colour]}m${text}\x1b[0m` : text;
  }

  /** Prints a table page by page; the first page sets the column widths. */
  table<Row>(columns: readonly Column<Row>[], object: (row: Row) => object): (rows: readonly Row[]) => void {
    let widths: number[] | undefined;
    return (rows) => {
      if (this.json) {
        for (const row of rows) this.write(JSON.stringify(object(row)));
        return;
      }
      if (rows.length === 0) return;
      const values = rows.map((row) => columns.map((column) => column.of(row)));
      const cells = values.map((line) => line.map(String));
      if (!widths) {
        const titles = columns.map(({ title }) => title.toUpperCase());
        widths = titles.map((title, i) => Math.max(title.length, ...cells.map((line) => line[i]!.length)));
        this.write(this.paint(aligned(titles, widths, values[0]!).join('  ').trimEnd(), 'dim'));
      }
      for (const [n, line] of cells.entries()) {
        const padded = aligned(line, widths, values[n]!).map((cell, i) =>
          this.paint(cell, columns[i]!.colour?.(rows[n]!)),
        );
        this.write(padded.join('  ').trimEnd());
      }
    };
  }

  /** Prints names and values, one pair per line. */
  fields(pairs: readonly (readonly [name: string, value: string | undefined])[]): void {
    const known = pairs.filter(([, value]) => value !== undefined);
    const width = Math.max(...known.map(([name]) => name.length));
    for (const [name, value] of known) this.write(`${this.paint(name.padEnd(width), 'dim')}  ${value}`);
  }
}

/** Pads cells to the width of their column, with numbers aligned right. */
function aligned(cells: readonly string[], widths: readonly number[], values: readonly unknown[]): string[] {
  return cells.map((cell, i) => (typeof values[i] === 'number' ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)));
}

/** Makes text from others safe for a terminal: one line, no control sequences. */
export function printable(text: string, most = 200): string {
  return showItem(Buffer.from(text), most);
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
