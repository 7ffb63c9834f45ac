import { beforeAll, describe, expect, it } from 'vitest';
import type { Store } from '../../../dist/store/store.js';
import { newJob } from '../../support/jobs.js';
import type { Bench } from './setup.js';

/** Schedules and their ticks. */
export function testSchedules(bench: Bench, skip = false): void {
  const { newQueue, total } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe.skipIf(skip)('schedules', () => {
    it('keeps an identical one, replaces a different one, and tracks its ticks', async () => {
      const queue = newQueue();
      const put = (definition: string, next: number, at = queue) =>
        store.schedules.put({ name: `tick ${queue}`, queue: at, definition, since: bench.now, next });
      const first = await put('{"a":1}', bench.now + 100);
      expect(first).toEqual({
        name: `tick ${queue}`,
        queue,
        definition: '{"a":1}',
        since: bench.now,
        next: bench.now + 100,
      });
      const since = bench.now;
      bench.now += 50;
      expect(await put('{"a":1}', bench.now + 999)).toEqual(first);
      expect(await put('{"a":2}', bench.now + 70)).toEqual({
        ...first,
        definition: '{"a":2}',
        since: bench.now,
        next: bench.now + 70,
      });
      expect(since).toBeLessThan(bench.now);
      const moved = await put('{"a":2}', bench.now + 70, `${queue}-other`);
      expect(moved.queue).toBe(`${queue}-other`);
      expect((await store.schedules.list()).filter(({ name }) => name === `tick ${queue}`)).toEqual([moved]);
      expect(await store.schedules.remove(`tick ${queue}`)).toBe(true);
      expect(await store.schedules.remove(`tick ${queue}`)).toBe(false);
      expect((await store.schedules.list()).filter(({ name }) => name === `tick ${queue}`)).toEqual([]);
    });

    it('does not fire ahead of the clock of the store', async () => {
      const queue = newQueue();
      const schedule = await store.schedules.put({
        name: `early ${queue}`,
        queue,
        definition: 'x',
        since: bench.now,
        next: bench.now + 60_000,
      });
      expect(await store.schedules.fire(schedule, { jobs: [newJob('a')], next: bench.now + 120_000 })).toBe(false);
      expect(await total(queue)).toBe(0);
      await store.schedules.remove(`early ${queue}`);
    });

    it('fires each tick once, together with its job, whichever process asks', async () => {
      const queue = newQueue();
      const schedule = await store.schedules.put({
        name: `once ${queue}`,
        queue,
        definition: 'x',
        since: bench.now,
        next: bench.now,
      });
      const fire = (id: string) =>
        store.schedules.fire(schedule, { jobs: [newJob(id)], next: bench.now + 60, last: bench.now });
      expect((await Promise.all(['a', 'b', 'c', 'd', 'e'].map(fire))).filter(Boolean)).toHaveLength(1);
      expect((await store.count(queue)).ready).toBe(1);
      const [after] = (await store.schedules.list()).filter(({ name }) => name === `once ${queue}`);
      expect(after).toMatchObject({ next: bench.now + 60, last: bench.now });
      expect(await store.schedules.fire({ ...after!, definition: 'y' }, { jobs: [newJob('f')], next: 0 })).toBe(false);
      expect(await store.schedules.fire(after!, { jobs: [] })).toBe(true);
      expect((await store.schedules.list()).find(({ name }) => name === `once ${queue}`)).not.toHaveProperty('next');
      expect(await store.schedules.fire(after!, { jobs: [newJob('g')] })).toBe(false);
      expect(await total(queue)).toBe(1);
      await store.schedules.remove(`once ${queue}`);
    });
  });
}
