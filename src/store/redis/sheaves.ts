import { THREE_DIGITS } from './entries.js';
import { unpack } from './pack.js';

/** Raw tasks that were taken at once and are leased together: see sheaf.lua, which this follows. */

const TOKEN = /^([1-9]\d*)\.\d+-(\d{3})\./;

/** Places travel as characters from this one on. */
export const FIRST_PLACE = 48;

/** What is leased in one field. */
export interface Sheaf {
  worker: string;
  /** By place; undefined where it is over. */
  tasks: (Buffer | undefined)[];
}

/** Whether a field is a task on its own. */
export function isAlone(field: string): boolean {
  return field.startsWith('1.');
}

export function readSheaf(field: string, value: Buffer): Sheaf {
  const cut = value.indexOf(0);
  const worker = value.toString('utf8', 0, cut);
  if (isAlone(field)) return { worker, tasks: [value.subarray(cut + 1)] };
  const tasks: Sheaf['tasks'] = [];
  const each = (start: number, end: number) => tasks.push(start < 0 ? undefined : value.subarray(start, end));
  unpack(value, each, value.indexOf(' ', cut) + 1);
  return { worker, tasks };
}

/** The token so many places behind this one. */
export function tokenAt(token: string, places: number): string {
  const at = token.indexOf('-') + 1;
  return `${token.slice(0, at)}${THREE_DIGITS[Number(token.slice(at, at + 3)) + places]}${token.slice(at + 3)}`;
}

/** Where tokens are found: by field and place, the index of each. One that is given twice counts once. */
export function gather(tokens: readonly string[]): Map<string, (number | undefined)[]> {
  const fields = new Map<string, (number | undefined)[]>();
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    const parts = TOKEN.exec(token);
    const place = parts ? Number(parts[2]) % Number(parts[1]) : 0;
    const field = place === 0 ? token : tokenAt(token, -place);
    const places = fields.get(field);
    if (places) places[place] ??= i;
    else fields.set(field, placed(place, i));
  }
  return fields;
}

function placed(place: number, i: number): (number | undefined)[] {
  const places: (number | undefined)[] = [];
  places[place] = i;
  return places;
}
