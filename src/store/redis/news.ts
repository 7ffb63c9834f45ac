import type { News, TaskDone } from '../raw.js';
import { unpack } from './pack.js';
import { FIRST_PLACE, isAlone, readSheaf, tokenAt } from './sheaves.js';

/** Reads what scripts publish on a queue's `news` and `ends` channels: one letter, then what it is about. */
export function readNews(message: Buffer | undefined): News {
  if (!message) return { type: 'reset' };
  const rest = message.subarray(1);
  switch (message.toString('latin1', 0, 1)) {
    case 'w':
      return rest.length > 0 ? { type: 'work', count: Number(rest.toString()) } : { type: 'work' };
    case 'd':
      return { type: 'done', ends: readEnds(rest) };
    case 'c':
      return { type: 'cancel', task: rest };
    case 'k':
      return { type: 'delete' };
    default:
      return { type: 'reset' };
  }
}

/** Fields and places, values, and results, if there are any: three packed lists one after the other. */
function readEnds(packed: Buffer): TaskDone[] {
  const lists: (Buffer | undefined)[][] = [];
  for (let at = 0; at < packed.length; ) {
    const list: (Buffer | undefined)[] = [];
    at = unpack(packed, (start, end) => list.push(start < 0 ? undefined : packed.subarray(start, end)), at);
    lists.push(list);
  }
  const [items = [], values = [], results = []] = lists;
  const ends: TaskDone[] = [];
  let number = 0;
  for (const [f, value] of values.entries()) {
    const field = items[2 * f]!.toString();
    const characters = items[2 * f + 1]!;
    const places = isAlone(field) ? [0] : Array.from(characters, (character) => character - FIRST_PLACE);
    const sheaf = value && readSheaf(field, value);
    for (const place of places) {
      const result = results[number++];
      const task = sheaf?.tasks[place];
      if (!task) continue;
      const end = { worker: sheaf!.worker, token: tokenAt(field, place), task };
      ends.push(result?.length ? { ...end, result: result.toString('utf8', 1) } : end);
    }
  }
  return ends;
}
