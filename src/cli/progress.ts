import { shorten } from './display-width.js';

/** One line on the terminal's standard error that shows how far a long operation has come, and is erased at its end. */

/** Nothing is shown before this time: most operations are over by then. */
const PATIENCE = 1_000;
const REDRAW_EVERY = 200;
const ERASE = '\r\x1b[K';

export interface ProgressTerminal {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

export interface ProgressOptions {
  /** How many there are; undefined when nobody knows. */
  total?: number;
  terminal?: ProgressTerminal;
  /** Milliseconds of a monotonic clock. */
  now?: () => number;
}

let visible: Progress | undefined;

/** Makes room for output on the same terminal; the line comes back with the next report. */
export function eraseProgress(): void {
  visible?.erase();
}

export class Progress {
  readonly #total: number | undefined;
  readonly #terminal: ProgressTerminal;
  readonly #now: () => number;
  readonly #startedAt: number;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #ended = false;

  constructor({ total, terminal = process.stderr, now = () => performance.now() }: ProgressOptions = {}) {
    this.#total = total;
    this.#terminal = terminal;
    this.#now = now;
    this.#startedAt = now();
  }

  /** Whether somebody can see it. */
  static get isWatched(): boolean {
    return process.stderr.isTTY === true;
  }

  /** So many are done; `share` of the whole, from 0 to 1, when that is known otherwise than by the total. */
  report(done: number, share?: number): void {
    const at = this.#now();
    if (at - this.#startedAt < PATIENCE || at - this.#drawnAt < REDRAW_EVERY) return;
    this.#drawnAt = at;
    this.show(progressText({ done, total: this.#total, share, seconds: (at - this.#startedAt) / 1_000 }));
  }

  /** Shows this text at once. */
  show(text: string): void {
    if (this.#ended || !this.#terminal.isTTY) return;
    visible = this;
    this.#terminal.write(`${ERASE}${shorten(text, (this.#terminal.columns || 80) - 1)}`);
  }

  erase(): void {
    if (visible !== this) return;
    visible = undefined;
    this.#terminal.write(ERASE);
  }

  end(): void {
    this.erase();
    this.#ended = true;
  }
}

interface Reached {
  done: number;
  total?: number;
  share?: number;
  seconds: number;
}

/** `12,000 of 50,000 (24 %), 3 s left`, or `12,000, 4,000 per second` when nobody knows how many there are. */
export function progressText({ done, total, share, seconds }: Reached): string {
  // More may have come since they were counted.
  const all = total === undefined ? undefined : Math.max(total, done);
  const part = all ? done / all : share;
  const count = all ? `${grouped(done)} of ${grouped(all)}` : grouped(done);
  if (part === undefined) return `${count}, ${grouped(done / seconds)} per second`;
  const percent = `${count} (${Math.floor(Math.min(1, part) * 100)} %)`;
  return part > 0 ? `${percent}, ${timeLeft((seconds * (1 - part)) / part)} left` : percent;
}

function grouped(number: number): string {
  return Math.round(number).toLocaleString('en-US');
}

function timeLeft(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`;
}
