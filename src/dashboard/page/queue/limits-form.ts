/** The limits of a queue as texts in a form, and back. */
import { shortDuration } from '../../../job/short-duration.js';
import type { GroupLimits, QueueLimits } from '../../../store/store.js';

export interface LimitTexts {
  concurrency: string;
  count: string;
  per: string;
}

type Part = Pick<QueueLimits, 'concurrency' | 'rate'>;

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

export function textsOf({ concurrency, rate }: Part = {}): LimitTexts {
  return {
    concurrency: concurrency?.toString() ?? '',
    count: rate?.count.toString() ?? '',
    per: rate ? shortDuration(rate.per) : '',
  };
}

/** The limits, or what is wrong with the texts. `ordered`: of each group, one job after the other. */
export function limitsOf(whole: LimitTexts, group: LimitTexts, ordered: boolean): QueueLimits | string {
  const all = partOf(whole);
  const each = partOf(group);
  if (typeof all === 'string') return all;
  if (typeof each === 'string') return `Per group: ${each}`;
  if (ordered && each.concurrency !== undefined)
    return 'Per group: jobs in order run one at a time; leave "At once" empty.';
  const limits: GroupLimits = ordered ? { ...each, ordered } : each;
  return Object.keys(limits).length > 0 ? { ...all, group: limits } : all;
}

function partOf({ concurrency, count, per }: LimitTexts): Part | string {
  const part: Part = {};
  if (concurrency.trim() !== '') {
    const value = wholeNumber(concurrency, 1_000_000);
    if (value === undefined) return 'At once must be a whole number from 1 to 1,000,000.';
    part.concurrency = value;
  }
  if (count.trim() === '' && per.trim() === '') return part;
  const most = wholeNumber(count, 1_000_000_000);
  const ms = milliseconds(per);
  if (most === undefined) return 'A rate needs a whole number of starts, 1 or more.';
  if (ms === undefined) return 'A rate needs a time such as 500ms, 10s, 5m, 2h or 1d.';
  return { ...part, rate: { count: most, per: ms } };
}

function wholeNumber(text: string, most: number): number | undefined {
  const value = Number(text);
  return /^\s*\d+\s*$/.test(text) && value >= 1 && value <= most ? value : undefined;
}

/** `10s`, or a number of milliseconds. */
function milliseconds(text: string): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)\s*$/.exec(text);
  const value = match ? Math.round(Number(match[1]) * UNITS[match[2]!]!) : 0;
  return value >= 1 && Number.isSafeInteger(value) ? value : undefined;
}
