import { beforeAll, describe, expect, it } from 'vitest';
import { fail } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { mustGet, names, newJob, settlementOf } from '../../support/jobs.js';
import { type Bench, random } from './setup.js';

/** Raw tasks next to jobs. */
export function testTasks(bench: Bench): void {
  const { newQueue, joined, claim, total } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('raw tasks', () => {
    it('are delivered byte for byte, first in, first out', async () => {
      const queue = newQueue();
      await joined(queue);
      const all = Buffer.from(Uint8Array.from({ length: 256 }, (_x, i) => i));
      await store.push(queue, [Buffer.from('one'), all]);
      const entries = await claim(queue, 5);
      expect(Buffer.from(entries[0]!.task!).toString()).toBe('one');
      expect(Buffer.from(entries[1]!.task!)).toEqual(all);
      expect(entries[0]!.job).toBeUndefined();
    });

    it('keep their bytes and order when many of any length are added at once', async () => {
      const queue = newQueue();
      await joined(queue);
      const tasks = ['', 'é', 'a'.repeat(5_000), '', 'b', '\u{1f600}', ''].map((text) => Buffer.from(text));
      await store.push(queue, tasks);
      await store.push(
        queue,
        tasks.map(() => Buffer.alloc(0)),
      );
      const taken = await claim(queue, 20);
      const expected = [...tasks, ...tasks.map(() => Buffer.alloc(0))];
      expect(taken.map(({ task }) => Buffer.from(task!).toString())).toEqual(expected.map((task) => task.toString()));
    });

    it('that are done together end even if leases of the batch are stale or occur twice', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.push(
        queue,
        ['t1', 't2', 't3', 't4', 't5'].map((text) => Buffer.from(text)),
      );
      const entries = [...(await claim(queue, 2)), ...(await claim(queue, 2))];
      const done = entries.map((entry) => settlementOf(entry, { to: 'done', attempt: 1, crashes: 0 }));
      expect(await store.settle(queue, [done[0]!])).toEqual([true]);
      expect(await store.settle(queue, [done[0]!, done[1]!, done[2]!, done[2]!, done[3]!])).toEqual([
        false,
        true,
        true,
        false,
        true,
      ]);
      expect(names(await claim(queue, 5))).toEqual(['t5']);
      expect(await store.count(queue)).toMatchObject({ ready: 0, active: 1 });
    });

    it('take turns with jobs of default priority', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.push(
        queue,
        ['t1', 't2', 't3', 't4'].map((text) => Buffer.from(text)),
      );
      await store.add(queue, [
        newJob('j1'),
        newJob('j2'),
        newJob('up', { priority: 1 }),
        newJob('down', { priority: -1 }),
      ]);
      const all = names(await claim(queue, 5));
      expect(all[0]).toBe('up');
      expect(new Set(all.slice(1))).toEqual(new Set(['t1', 't2', 'j1', 'j2']));
      expect(names(await claim(queue, 5))).toEqual(['t3', 't4', 'down']);
    });

    it('are served alongside jobs when claiming one at a time', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.push(
        queue,
        ['t1', 't2'].map((text) => Buffer.from(text)),
      );
      await store.add(queue, [newJob('j1'), newJob('j2')]);
      const firstTwo = [...names(await claim(queue, 1)), ...names(await claim(queue, 1))];
      expect(firstTwo.sort()).toEqual(['j1', 't1']);
    });

    it('are gone when done and back at the front when released', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.push(
        queue,
        ['t1', 't2', 't3'].map((text) => Buffer.from(text)),
      );
      const [one, two] = await claim(queue, 2);
      const counts = { attempt: 1, crashes: 0 };
      expect(
        await store.settle(queue, [
          settlementOf(one!, { to: 'done', ...counts }),
          settlementOf(two!, { to: 'ready', ...counts }),
        ]),
      ).toEqual([true, true]);
      expect(await total(queue)).toBe(2);
      expect(names(await claim(queue, 5))).toEqual(['t2', 't3']);
    });

    it('become jobs with a record when they fail', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.push(queue, [Buffer.from([0, 255, 10])]);
      const [entry] = await claim(queue, 1);
      const record = newJob('born', { payload: entry!.task! });
      const move = fail({ attempt: 1, crashes: 0, spec: record.spec }, 'boom', { random, now: 0, delay: 500 });
      expect(await store.settle(queue, [settlementOf(entry!, move, record)])).toEqual([true]);
      const job = await mustGet(store, queue, 'born');
      expect(job).toMatchObject({ state: 'scheduled', attempt: 1, error: 'boom', runAt: bench.now + 500 });
      expect(Buffer.from(job.payload as Uint8Array)).toEqual(Buffer.from([0, 255, 10]));
      expect(await total(queue)).toBe(1);
    });
  });
}
