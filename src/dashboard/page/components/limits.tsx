import type { GroupLimits, QueueLimits } from '../../../store/store.js';
import { count } from '../lib/format.js';
import { duration } from '../lib/time.js';

/** The limits of a queue in a few words; empty if it has none. */
export function limitsText({ group, ...whole }: QueueLimits): string {
  return [partText(whole), group ? partText(group, ' per group') : ''].filter((text) => text !== '').join(', ');
}

function partText({ concurrency, rate, ordered }: GroupLimits, suffix = ''): string {
  const texts = [];
  if (concurrency !== undefined) texts.push(`${count(concurrency)} at once${suffix}`);
  if (rate) texts.push(`${count(rate.count)} per ${duration(rate.per).replace(/^1 /, '')}${suffix}`);
  if (ordered) texts.push(`in order${suffix}`);
  return texts.join(', ');
}
