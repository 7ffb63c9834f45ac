import type { News, TaskDone } from '../raw.js';
import { unpack } from './pack.js';

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

/** Tokens, sessions with their tasks, and results, if there are any: three packed lists one after the other. */
function readEnds(packed: Buffer): TaskDone[] {
  const lists: (Buffer | undefined)[][] = [];
  for (let at = 0; at < packed.length; ) {
    const list: (Buffer | undefined)[] = [];
    at = unpack(packed, (start, end) => list.push(start < 0 ? undefined : packed.subarray(start, end)), at);
    lists.push(list);
  }
  const [tokens = [], values = [], results = []] = lists;
  return values.flatMap((value, i) => {
    if (!value) return [];
    const cut = value.indexOf(0);
    const result = results[i]?.length ? results[i].toString('utf8', 1) : undefined;
    const end = { worker: value.toString('utf8', 0, cut), token: tokens[i]!.toString(), task: value.subarray(cut + 1) };
    return [result === undefined ? end : { ...end, result }];
  });
}
