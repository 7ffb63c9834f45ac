import { beforeAll, describe, expect, it } from 'vitest';
import { die, fail, finish, release } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { newJob, settlementOf } from '../../support/jobs.js';
import type { Bench } from './setup.js';

/** What is recorded for readers of events. */
export function testEvents(bench: Bench): void {
  const { newQueue, joined, claim, finishAll } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('events', () => {
    const read = async (queue: string, after: string) =>
      (await store.events.read(queue, after, 100)).events.map(({ type, id, info }) =>
        [type, id, info].join(' ').trim(),
      );

    it('are not recorded unless requested', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a')]);
      await finishAll(queue, 1);
      expect((await store.events.read(queue, '0', 10)).events).toEqual([]);
    });

    it('cover the whole life of a job', async () => {
      const queue = newQueue();
      await joined(queue);
      const start = await store.events.record(queue, 60_000);
      const needs = (id: string) => ({ spec: { needs: [{ queue, id, on: 'success' as const }], group: 'g' } });
      await store.add(queue, [newJob('a'), newJob('b'), newJob('down', needs('b'))]);
      const [a, b] = await claim(queue, 2);
      await store.recordProgress(queue, a!.lease, { progress: '{"half":1}' });
      await store.settle(queue, [
        settlementOf(a!, fail(a!.job!, 'oops', { random: () => 0, now: 0, delay: 10 })),
        settlementOf(b!, release(b!.job!)),
      ]);
      bench.now += 10;
      const again = await claim(queue, 2);
      await store.settle(queue, [settlementOf(again[0]!, die(again[0]!.job!, 'no hope'))]);
      await store.settle(queue, [settlementOf(again[1]!, finish(again[1]!.job!))]);
      await store.rerun(queue, ['b'], ['dead']);
      await store.cancel(queue, ['b']);
      expect(await read(queue, start)).toEqual([
        'added a',
        'added b',
        'added down',
        'started a 1',
        'started b 1',
        'progress a {"half":1}',
        'retry a oops',
        'released b',
        'started b 1',
        'started a 2',
        'dead b no hope',
        'cancelled down an upstream job ended dead: b',
        'done a',
        'revived b',
        'cancelled b cancelled',
      ]);
      const page = await store.events.read(queue, start, 2);
      expect(page.gap).toBe(false);
      expect((await read(queue, page.events[1]!.position))[0]).toBe('added down');
      expect(page.events[0]!.at).toBe(bench.now - 10);
    });

    it('are bounded: the newest ten thousand are kept, and reading older ones reports a gap', async () => {
      const queue = newQueue();
      const start = await store.events.record(queue, 60_000);
      const jobs = (batch: number) => Array.from({ length: 1_000 }, (_x, i) => newJob(`${batch}-${i}`));
      for (let batch = 0; batch < 11; batch++) await store.add(queue, jobs(batch));
      await store.events.record(queue, 60_000);
      const { events, gap } = await store.events.read(queue, start, 10_000);
      expect(gap).toBe(true);
      expect(events.length).toBe(10_000);
      // Leaves room for a store that drops them in blocks.
      const rest = await store.events.read(queue, events.at(-1)!.position, 1_000);
      expect(rest.events.length).toBeLessThan(200);
      expect([...events, ...rest.events].at(-1)).toMatchObject({ type: 'added', id: '10-999' });
    });

    it('report a gap where nothing was recorded and where the position is no longer known', async () => {
      const queue = newQueue();
      const start = await store.events.record(queue, 1_000);
      await store.add(queue, [newJob('a')]);
      bench.now += 1_000;
      await store.add(queue, [newJob('unseen')]);
      await store.events.record(queue, 1_000);
      await store.add(queue, [newJob('b')]);
      expect(await read(queue, start)).toEqual(['added a', 'gap', 'added b']);
      await store.obliterate(queue);
      await store.add(queue, [newJob('c')]);
      const after = await store.events.read(queue, start, 10);
      expect(after.gap).toBe(true);
      await store.obliterate(queue);
      expect(await store.events.record(queue, 5_000)).toMatch(/^\d/);
      expect(after.events.map(({ id }) => id)).toEqual(['c']);
    });
  });
}
