import type { CompletedTask, TaskEvent } from '../../raw-store.js';
import { unpack } from '../records/msgpack.js';
import { FIRST_PLACE, isAlone, readTaskBatch, tokenAt } from './task-batches.js';

/** Parses what scripts publish on the `news` and `ends` channels of a queue: one letter, then its subject. */
export function readTaskEvent(message: Buffer | undefined): TaskEvent {
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

/** Parses fields and indexes, values, and results, if any: three packed lists one after the other. */
function readEnds(packed: Buffer): CompletedTask[] {
  const lists: Buffer[][] = [];
  for (let at = 0; at < packed.length; ) {
    const list: Buffer[] = [];
    at = unpack(packed, (start, end) => list.push(packed.subarray(start, end)), at);
    lists.push(list);
  }
  const [items = [], values = [], results = []] = lists;
  const ends: CompletedTask[] = [];
  for (const [i, value] of values.entries()) {
    const field = items[2 * i]!.toString();
    const { worker, tasks } = readTaskBatch(field, value);
    for (const character of isAlone(field) ? [FIRST_PLACE] : items[2 * i + 1]!) {
      const place = character - FIRST_PLACE;
      const result = results[ends.length];
      const end = { worker, token: tokenAt(field, place), task: tasks[place]! };
      ends.push(result?.length ? { ...end, result: result.toString('utf8', 1) } : end);
    }
  }
  return ends;
}
