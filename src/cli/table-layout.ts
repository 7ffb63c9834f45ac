import { displayWidth, pad, shorten } from './display-width.js';

export interface LayoutColumn {
  title: string;
  /** Shortened only when nothing else helps, such as an id that users copy. */
  keep?: boolean;
}

const GAP = '  ';
/** What is left of a column that should have been kept. */
const LEAST_KEPT = 8;

/** The widths of a table's columns. */
export class TableLayout {
  readonly #columns: readonly LayoutColumn[];
  /** The widest cell of each column so far. */
  readonly #natural: number[];
  readonly #numeric: boolean[];
  #widths: number[];

  /** `numeric` columns are aligned right and never shortened. */
  constructor(columns: readonly LayoutColumn[], numeric: boolean[]) {
    this.#columns = columns;
    this.#numeric = numeric;
    this.#natural = columns.map(({ title }) => displayWidth(title));
    this.#widths = this.#natural;
  }

  /** Makes room for these cells, or shortens the widest columns of text when the line would be wider than `room`. */
  measure(rows: readonly (readonly string[])[], room: number): void {
    for (const cells of rows) {
      for (const [i, cell] of cells.entries()) this.#natural[i] = Math.max(this.#natural[i]!, displayWidth(cell));
    }
    this.#widths = [...this.#natural];
    const text = this.#columns.map((_column, i) => i).filter((i) => !this.#numeric[i]);
    const titleWidth = (i: number) => displayWidth(this.#columns[i]!.title);
    const [kept, other] = [true, false].map((keep) => text.filter((i) => (this.#columns[i]!.keep ?? false) === keep));
    this.#shrink(other!, room, titleWidth);
    this.#shrink(kept!, room, (i) => Math.max(LEAST_KEPT, titleWidth(i)));
  }

  #shrink(columns: readonly number[], room: number, least: (column: number) => number): void {
    const gaps = GAP.length * (this.#columns.length - 1);
    let excess = this.#widths.reduce((sum, width) => sum + width, gaps) - room;
    for (; excess > 0; excess--) {
      const widths = columns.map((i) => (this.#widths[i]! > least(i) ? this.#widths[i]! : 0));
      const widest = Math.max(0, ...widths);
      if (widest === 0) return;
      this.#widths[columns[widths.indexOf(widest)]!]! -= 1;
    }
  }

  /** One line, with each cell passed through `paint` once it has its final width. */
  line(cells: readonly string[], paint: (cell: string, column: number) => string = (cell) => cell): string {
    return cells
      .map((cell, i) => paint(this.#cell(cell, i), i))
      .join(GAP)
      .trimEnd();
  }

  /** Only a column that had to shrink shortens its cells: a cell that was not measured may stick out. */
  #cell(text: string, i: number): string {
    const width = this.#widths[i]!;
    return pad(width < this.#natural[i]! ? shorten(text, width) : text, width, this.#numeric[i] ? 'left' : 'right');
  }
}
