import {
  type Activity,
  HISTORY_RANGES,
  type HistoryRange,
  type Interval,
  intervalAt,
  RANGE_NAMES,
  readActivity,
  writeActivity,
} from '../history.js';
import type { HistoryStore } from '../store.js';
import type { Reply } from './connection/client.js';
import { text, type View } from './view.js';

/** What identifies a range in the fields of the hash. */
const LETTERS: Record<HistoryRange, string> = { hour: 'h', day: 'd', month: 'm' };
/** The longest range, and a step. */
const KEPT = HISTORY_RANGES.month.step * (HISTORY_RANGES.month.steps + 1);

const RANGES = RANGE_NAMES.flatMap((name) => {
  const { step, steps } = HISTORY_RANGES[name];
  return [LETTERS[name], String(step), String(steps)];
});

/** The history of a queue in one hash, which expires when nothing happens for a month. */
export class RedisHistory implements HistoryStore {
  constructor(private readonly view: View) {}

  async record(queue: string, activity: Activity): Promise<void> {
    const mustExist = queue === '' ? '0' : '1';
    const args = [this.view.time(), writeActivity(activity), mustExist, String(KEPT), ...RANGES];
    // Not repeated if the answer is lost: counting twice is worse than not at all.
    await this.view.run('record_history', queue, args, false);
  }

  async read(queue: string, range: HistoryRange): Promise<Interval[]> {
    const key = `${this.view.keys.queue(queue).stem}history`;
    const { step, steps } = HISTORY_RANGES[range];
    const last = intervalAt(range, this.view.now());
    const numbers = Array.from({ length: steps }, (_, i) => last - steps + 1 + i);
    const fields = numbers.map((number) => `${LETTERS[range]}${number}`);
    const found = (await this.view.client.call('HMGET', key, ...fields)) as Reply[];
    return found.flatMap((one, i) => (one === null ? [] : [{ at: numbers[i]! * step, ...readActivity(text(one)) }]));
  }
}
