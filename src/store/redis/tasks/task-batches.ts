import { THREE_DIGITS } from '../records/entries.js';
import { unpack } from '../records/msgpack.js';

/** Raw tasks that were taken at once and are leased together: see sheaf.lua, which this follows. */

const TOKEN = /^\d+\.\d+-(\d{3})\./;
/** Most tasks of a sheaf. */
const SIZE = 50;

/** Places travel as characters from this one on. */
export const FIRST_PLACE = 48;

/** What is leased in one field, by place. */
export interface TaskBatch {
  worker: string;
  tasks: Buffer[];
}

/** Whether a field is a task on its own. */
export function isAlone(field: string): boolean {
  return field.startsWith('1.');
}

export function readTaskBatch(field: string, value: Buffer): TaskBatch {
  const cut = value.indexOf(0);
  const worker = value.toString('utf8', 0, cut);
  if (isAlone(field)) return { worker, tasks: [value.subarray(cut + 1)] };
  const tasks: Buffer[] = [];
  unpack(value, (start, end) => tasks.push(value.subarray(start, end)), cut + 1);
  return { worker, tasks };
}

/** The token so many places behind this one. */
export function tokenAt(token: string, places: number): string {
  const at = token.indexOf('-') + 1;
  return `${token.slice(0, at)}${THREE_DIGITS[Number(token.slice(at, at + 3)) + places]}${token.slice(at + 3)}`;
}

/** Where leases are found: by field and place, the index of each. One that is given twice counts once. */
export function groupByBatch(leases: readonly { token: string }[]): Map<string, (number | undefined)[]> {
  const fields = new Map<string, (number | undefined)[]>();
  let last: Opened | undefined;
  for (let i = 0; i < leases.length; i++) {
    const { token } = leases[i]!;
    let place = last ? placeIn(last, token) : -1;
    if (place < 0) {
      last = open(token);
      place = last.place;
      last.places = fields.get(last.field) ?? [];
      if (last.places.length === 0) fields.set(last.field, last.places);
    }
    last!.places[place] ??= i;
  }
  return fields;
}

/** A sheaf of which one token has been seen. */
interface Opened {
  field: string;
  place: number;
  places: (number | undefined)[];
  /** What is before and behind the three digits of each token, and those of the first; -1 for a task on its own. */
  head: string;
  tail: string;
  first: number;
}

function open(token: string): Opened {
  const index = isAlone(token) ? undefined : TOKEN.exec(token)?.[1];
  if (index === undefined) return { field: token, place: 0, places: [], head: '', tail: '', first: -1 };
  const place = Number(index) % SIZE;
  const at = token.indexOf('-') + 1;
  const [head, tail] = [token.slice(0, at), token.slice(at + 3)];
  return { field: tokenAt(token, -place), place, places: [], head, tail, first: Number(index) - place };
}

/** The place of a token in this sheaf, mostly that of the one before; -1: it is of another. Nothing is made for it. */
function placeIn({ head, tail, first }: Opened, token: string): number {
  const at = head.length;
  if (first < 0 || token.length !== at + 3 + tail.length) return -1;
  if (!token.startsWith(head) || !token.endsWith(tail)) return -1;
  let index = 0;
  for (let i = at; i < at + 3; i++) {
    const digit = token.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) return -1;
    index = index * 10 + digit;
  }
  return index >= first && index < first + SIZE ? index - first : -1;
}
