import { openSync, writeSync } from 'node:fs';
import { CroreError } from '../errors.js';
import { redact } from '../redact.js';
import { now } from './clock.js';

export type Log = (text: string) => void;

export interface LogOptions {
  readonly quiet: boolean;
  readonly file: string;
  readonly timestamps: boolean;
}

/** Writes directly to the descriptors: a stream on stderr would make the pipe non-blocking for the child as well. */
export function openLog({ quiet, file, timestamps }: LogOptions): Log {
  const sinks = quiet ? [] : [2];
  if (file !== '') sinks.push(openAppend(file, 'log file'));
  if (sinks.length === 0) return () => {};
  return (text) => {
    const line = `w8y: ${timestamps ? `${timestamp()} ` : ''}${redact(text)}\n`;
    for (const sink of sinks) writeLine(sink, line);
  };
}

/** Only the owner may read the file: items can be names of customers. */
export function openAppend(file: string, what: string): number {
  try {
    return openSync(file, 'a', 0o600);
  } catch (error) {
    throw new CroreError('BAD_OPTION', `cannot open the ${what} ${file}: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** A log that cannot be written must not stop the work. */
export function writeLine(sink: number, line: string): void {
  try {
    writeSync(sink, line);
  } catch {}
}

/** UTC with microseconds, in the format of Go's log package: `2006/01/02 15:04:05.000000`. */
function timestamp(): string {
  const micros = Math.round(wallClock() * 1000);
  const date = new Date(Math.floor(micros / 1000)).toISOString();
  const fraction = String(micros % 1_000_000).padStart(6, '0');
  return `${date.slice(0, 10).replaceAll('-', '/')} ${date.slice(11, 19)}.${fraction}`;
}

let origin = Date.now() - now();

/** Date.now() with the resolution of the monotonic clock, corrected whenever the system time is set. */
function wallClock(): number {
  const coarse = Date.now();
  if (Math.abs(origin + now() - coarse) > 2) origin = coarse - now();
  return origin + now();
}

/** Shows an item as one readable word: escapes everything that would break a line, a table or a terminal. */
export function showItem(item: Buffer, most = 200): string {
  const text = item.toString('utf8');
  const exact = Buffer.from(text).equals(item) ? text : item.toString('latin1');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
  const safe = exact.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\\]|[\u0080-\u00ff]/g, (char) =>
    escapeChar(char, exact === text),
  );
  return safe.length > most ? `${safe.slice(0, most)}… (${item.length} bytes)` : safe;
}

function escapeChar(char: string, unicode: boolean): string {
  const known = { '\t': '\\t', '\n': '\\n', '\r': '\\r', '\\': '\\\\' }[char];
  const code = char.charCodeAt(0);
  if (known) return known;
  if (unicode && code >= 0xa0 && code <= 0xff) return char;
  return code > 0xff ? `\\u${code.toString(16)}` : `\\x${code.toString(16).padStart(2, '0')}`;
}
