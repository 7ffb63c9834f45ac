import { beforeAll, describe, expect, it } from 'vitest';
import { type Activity, noActivity } from '../../../dist/store/history.js';
import type { HistoryStore, Store } from '../../../dist/store/store.js';
import { newJob } from '../../support/jobs.js';
import type { Bench } from './setup.js';

/** What is kept of the activity in a queue. */
export function testHistory(bench: Bench): void {
  const { newQueue, joined, claim } = bench;
  let store: Store;
  let history: HistoryStore;
  beforeAll(() => {
    ({ store } = bench);
    history = store.history!;
  });
  const activity = (some: Partial<Activity>): Activity => ({ ...noActivity(), ...some });
  const MINUTE = 60_000;
  const beginningOf = (step: number) => Math.floor(bench.now / step) * step;

  describe('history', () => {
    it('adds up what is recorded within an interval, at every resolution', async () => {
      const queue = newQueue();
      await store.add(queue, [newJob('a')]);
      bench.now = beginningOf(21_600_000) + 21_600_000;
      await history.record(queue, activity({ added: 2, done: 1, waits: { 5: 1, 12: 3 } }));
      bench.now += MINUTE / 2;
      await history.record(queue, activity({ added: 1, failed: 4, dead: 1, waits: { 12: 2 }, runs: { 7: 1 } }));
      bench.now += MINUTE / 2;
      await history.record(queue, activity({ done: 5 }));
      const first = { added: 3, done: 1, failed: 4, dead: 1, waits: { 5: 1, 12: 5 }, runs: { 7: 1 }, depth: 1 };
      expect(await history.read(queue, 'hour')).toEqual([
        { at: bench.now - MINUTE, ...first },
        { at: bench.now, ...activity({ done: 5 }), depth: 1 },
      ]);
      const all = [{ at: bench.now - MINUTE, ...first, done: 6 }];
      expect(await history.read(queue, 'day')).toEqual(all);
      expect(await history.read(queue, 'month')).toEqual(all);
    });

    it('notes how many entries wait or are active when something is recorded', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('b'), newJob('later', { delay: 60_000 })]);
      await store.push(queue, [Buffer.from('task')]);
      await claim(queue, 1);
      await history.record(queue, activity({ added: 4 }));
      expect((await history.read(queue, 'hour'))[0]).toMatchObject({ depth: 4 });
    });

    it('keeps a bounded number of intervals, whatever is recorded', async () => {
      const queue = newQueue();
      await store.add(queue, [newJob('a')]);
      for (let i = 0; i < 130; i++) {
        bench.now += MINUTE;
        await history.record(queue, activity({ done: 1 }));
      }
      const hour = await history.read(queue, 'hour');
      expect(hour).toHaveLength(60);
      expect(hour.at(-1)).toMatchObject({ at: beginningOf(MINUTE), done: 1 });
      expect((await history.read(queue, 'day')).reduce((sum, { done }) => sum + done, 0)).toBe(130);
      bench.now += 40 * 86_400_000;
      expect(await history.read(queue, 'month')).toEqual([]);
    });

    it('knows nothing of a queue that was forgotten, and is removed with its queue', async () => {
      const queue = newQueue();
      await history.record(queue, activity({ done: 1 }));
      expect(await history.read(queue, 'hour')).toEqual([]);
      await store.add(queue, [newJob('a')]);
      await history.record(queue, activity({ done: 1 }));
      await store.obliterate(queue);
      expect(await history.read(queue, 'hour')).toEqual([]);
    });

    it('is kept for all queues together under the empty name, which is no queue', async () => {
      await history.record('', activity({ added: 7 }));
      expect((await history.read('', 'hour')).at(-1)).toMatchObject({ added: 7 });
      expect(await store.queues()).not.toContain('');
    });
  });
}
