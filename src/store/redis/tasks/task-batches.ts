import { unpack } from '../records/msgpack.js';

/** Raw tasks that were claimed at once and are leased together: mirrors task_batch.lua. */

const TOKEN = /^\d+\.\d+-(\d{3})\./;
/** Maximum number of tasks in a task batch. */
const SIZE = 50;

/** Indexes within a claim, in the form used in tokens. */
export const THREE_DIGITS = Array.from({ length: 1_000 }, (_x, i) => String(i).padStart(3, '0'));

/** Indexes are encoded as characters from this code on. */
export const FIRST_PLACE = 48;

/** The tasks leased in one field, by index. */
export interface TaskBatch {
  worker: string;
  tasks: Buffer[];
}

/** Whether a field holds a single task. */
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

/** The token this many places after the given one. */
export function tokenAt(token: string, places: number): string {
  const at = token.indexOf('-') + 1;
  return `${token.slice(0, at)}${THREE_DIGITS[Number(token.slice(at, at + 3)) + places]}${token.slice(at + 3)}`;
}

/** Raw tasks that were claimed together, still packed. */
export interface ClaimedTasks {
  first: number;
  nonce: string;
  /** The size of the task batches; 1: each task is leased alone. */
  size: number;
  batches: readonly Buffer[];
}

/** Calls `each` with the token and the bytes of every claimed task, which are a slice of its batch. */
export function readTasks(
  { first, nonce, size, batches }: ClaimedTasks,
  each: (token: string, task: Buffer) => void,
): void {
  let index = 0;
  for (const tasks of batches) {
    unpack(tasks, (start, end, _place, count) => {
      const token = `${size === 1 ? 1 : count}.${first}-${THREE_DIGITS[index++]}.${nonce}`;
      each(token, tasks.subarray(start, end));
    });
  }
}

/** Fields and indexes in the form that `finish_tasks` and `done_tasks` take, and the indexes of the leases in the same order. */
export function byBatch(leases: readonly { token: string }[]): { items: string[]; order: number[] } {
  const items: string[] = [];
  const order: number[] = [];
  for (const [field, places] of groupByBatch(leases)) {
    let text = '';
    for (let place = 0; place < places.length; place++) {
      const i = places[place];
      if (i === undefined) continue;
      order.push(i);
      text += String.fromCharCode(FIRST_PLACE + place);
    }
    items.push(field, isAlone(field) ? '' : text);
  }
  return { items, order };
}

/** Groups leases by field and index within the field; the values are indexes in `leases`. Duplicates count once. */
function groupByBatch(leases: readonly { token: string }[]): Map<string, (number | undefined)[]> {
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

/** A task batch of which one token has been read. */
interface Opened {
  field: string;
  place: number;
  places: (number | undefined)[];
  /**
   * The parts before and after the three digits of each token, and the digits of the first token; -1 for a single task.
   */
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

/**
 * The index of a token in this task batch, usually that of the previous token; -1: it belongs to another one. Allocates
 * nothing.
 */
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
