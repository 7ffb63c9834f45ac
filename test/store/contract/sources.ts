import { beforeAll, describe, expect, it } from 'vitest';
import { FORGETFUL_SPEC } from '../../../dist/job/spec.js';
import { finish } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { newJob, settlementOf } from '../../support/jobs.js';
import type { Bench } from './setup.js';

/** Jobs from an ordered source. */
export function testCarrying(bench: Bench): void {
  const { newQueue, joined, claim } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('adding from a source', () => {
    const mark = (from: string, to: string, source = 's') => ({ source, from, to });
    const ids = async (queue: string) =>
      (await store.list(queue, { state: 'ready', limit: 50 })).jobs.map(({ id }) => id);

    it('adds jobs in order and advances the source position if it matches', async () => {
      const queue = newQueue();
      expect(await store.sources.position(queue, 's')).toBe('');
      expect(await store.sources.add(queue, [newJob('a'), newJob('b')], mark('', '2'))).toEqual([
        { outcome: 'created' },
        { outcome: 'created' },
      ]);
      expect(await store.sources.add(queue, [newJob('c')], mark('2', '3'))).toEqual([{ outcome: 'created' }]);
      expect(await store.sources.position(queue, 's')).toBe('3');
      expect(await ids(queue)).toEqual(['a', 'b', 'c']);
    });

    it('changes nothing when the source position differs, even when the jobs were deleted long ago', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.sources.add(queue, [newJob('a', { spec: FORGETFUL_SPEC })], mark('', '1'));
      const [entry] = await claim(queue, 1);
      await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))]);
      expect(await store.get(queue, ['a'])).toEqual([undefined]);
      expect(await store.sources.add(queue, [newJob('a')], mark('', '1'))).toBe('stale');
      expect(await store.sources.add(queue, [newJob('b')], mark('2', '3'))).toBe('stale');
      expect(await store.sources.position(queue, 's')).toBe('1');
      expect((await store.count(queue)).ready).toBe(0);
    });

    it('keeps sources and queues separate, and keeps source positions when the queue is obliterated', async () => {
      const [one, two] = [newQueue(), newQueue()];
      await store.sources.add(one, [newJob('a')], mark('', '1'));
      await store.sources.add(one, [newJob('b')], mark('', '7', 'other'));
      await store.sources.add(two, [newJob('c')], mark('', '9'));
      await store.obliterate(one);
      expect(await store.sources.position(one, 's')).toBe('1');
      expect(await store.sources.position(one, 'other')).toBe('7');
      expect(await store.sources.position(two, 's')).toBe('9');
      expect(await store.sources.add(one, [newJob('d')], mark('1', '2'))).toEqual([{ outcome: 'created' }]);
    });

    it('does not advance the source position when the jobs are refused', async () => {
      const queue = newQueue();
      const needy = newJob('a', { spec: { needs: [{ queue, id: 'nobody', on: 'success' }] } });
      await expect(store.sources.add(queue, [newJob('b'), needy], mark('', '2'))).rejects.toMatchObject({
        code: 'UNKNOWN_UPSTREAM',
      });
      expect(await store.sources.position(queue, 's')).toBe('');
      expect(await store.sources.add(queue, [newJob('b')], mark('', '1'))).toEqual([{ outcome: 'created' }]);
      expect(await store.sources.add(queue, [newJob('b')], mark('1', '2'))).toEqual([
        { outcome: 'duplicate', id: 'b' },
      ]);
    });

    it('lets exactly one of many concurrent calls succeed', async () => {
      const queue = newQueue();
      const tries = Array.from({ length: 20 }, (_x, i) => store.sources.add(queue, [newJob(`j${i}`)], mark('', '1')));
      expect((await Promise.all(tries)).filter((answer) => answer !== 'stale')).toHaveLength(1);
      expect((await store.count(queue)).ready).toBe(1);
    });
  });
}
