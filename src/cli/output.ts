import { showItem } from '../process/log.js';
import { displayWidth, pad } from './display-width.js';
import { eraseProgress } from './progress.js';
import { outputClosed } from './streams.js';
import { type LayoutColumn, TableLayout } from './table-layout.js';

export function print(text: string): void {
  process.stdout.write(text);
}

export interface Column<Row> extends LayoutColumn {
  of: (row: Row) => string | number;
  /** The colour on a terminal that supports colours. */
  colour?: (row: Row) => Colour | undefined;
}

export type Colour = 'red' | 'green' | 'yellow' | 'dim';
const CODES: Record<Colour, number> = { red: 31, green: 32, yellow: 33, dim: 2 };

/** The output of a command: one JSON object per line for programs, short aligned text for people. */
export class Output {
  readonly #colours = process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb';

  constructor(readonly json: boolean) {}

  /** The reader is gone, as after `| head -1`: commands that only list may stop, others continue silently. */
  get closed(): boolean {
    return outputClosed();
  }

  /** Prints one item, as an object or as a line of text. */
  say(object: object, text: string): void {
    this.write(this.json ? JSON.stringify(object) : text);
  }

  write(line: string): void {
    if (this.closed) return;
    if (process.stdout.isTTY) eraseProgress();
    process.stdout.write(`${line}\n`);
  }

  /** Prints a note for people that is not part of the output; programs find it in the objects. */
  remark(text: string): void {
    if (!this.json) process.stderr.write(`crore: ${text}\n`);
  }

  paint(text: string, colour: Colour | undefined): string {
    return this.#colours && colour ? `\x1b[${CODES[colour]}m${text}\x1b[0m` : text;
  }

  /** Prints a table page by page. Its columns fit the first page, and on a terminal the width of the terminal. */
  table<Row>(columns: readonly Column<Row>[], object: (row: Row) => object): (rows: readonly Row[]) => void {
    let layout: TableLayout | undefined;
    return (rows) => {
      if (this.json) {
        for (const row of rows) this.write(JSON.stringify(object(row)));
        return;
      }
      if (rows.length === 0) return;
      const values = rows.map((row) => columns.map((column) => column.of(row)));
      const cells = values.map((line) => line.map(String));
      const room = terminalWidth();
      const isFirst = layout === undefined;
      layout ??= new TableLayout(
        columns,
        columns.map((_column, i) => values.some((line) => typeof line[i] === 'number')),
      );
      if (isFirst || room !== undefined) layout.measure(cells, room ?? Number.POSITIVE_INFINITY);
      if (isFirst) this.write(this.paint(layout.line(columns.map(({ title }) => title.toUpperCase())), 'dim'));
      for (const [n, line] of cells.entries()) {
        this.write(layout.line(line, (cell, i) => this.paint(cell, columns[i]!.colour?.(rows[n]!))));
      }
    };
  }

  /** Prints names and values, one pair per line. */
  fields(pairs: readonly (readonly [name: string, value: string | undefined])[]): void {
    const known = pairs.filter(([, value]) => value !== undefined);
    const width = Math.max(...known.map(([name]) => displayWidth(name)));
    for (const [name, value] of known) this.write(`${this.paint(pad(name, width), 'dim')}  ${value}`);
  }
}

/** Columns of the terminal; undefined when the output goes elsewhere, or to a terminal that does not know its size. */
function terminalWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns || undefined : undefined;
}

/** Makes text from others safe for a terminal: one line, no control sequences. */
export function printable(text: string, most = 200): string {
  return showItem(Buffer.from(text), most);
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
