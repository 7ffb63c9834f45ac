import { beforeAll, describe, expect, it } from 'vitest';
import type { ChildList } from '../../../dist/job/children.js';
import type { Entry, Need } from '../../../dist/job/job.js';
import { FORGETFUL_SPEC } from '../../../dist/job/spec.js';
import { die, finish, park } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { mustGet, names, newJob, settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import { type Bench, SWEEP } from './setup.js';

/** Jobs that wait for jobs they have added themselves. */
export function testChildren(bench: Bench): void {
  const { newQueue, joined, claim } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('children', () => {
    const listOf = (queue: string, ids: string[], on: Need['on'] = 'success', first = 0): ChildList => ({
      first,
      children: ids.map((id) => ({ queue, id, on })),
    });
    const settle = async (queue: string, entry: Entry, outcome: Parameters<typeof settlementOf>[1]) =>
      (await store.settle(queue, [settlementOf(entry, outcome)]))[0]!;
    const end = async (queue: string, how: 'done' | 'dead' = 'done') => {
      const [entry] = await claim(queue, 1);
      expect(entry).toBeDefined();
      const job = entry!.job!;
      expect(await settle(queue, entry!, how === 'done' ? finish(job, `"${job.id}"`) : die(job, 'no'))).toBe(true);
    };
    const arrives = (queue: string, id: string, state: string) =>
      until(`job ${id} is ${state}`, async () => (await mustGet(store, queue, id)).state === state);

    /** A claimed parent, and children that were added in its name. */
    const family = async (childQueue?: string, ids = ['c1', 'c2'], spec = {}) => {
      const queue = newQueue();
      const other = childQueue ?? queue;
      await joined(queue);
      if (other !== queue) await joined(other);
      await store.add(queue, [newJob('parent')]);
      const [parent] = await claim(queue, 1);
      await store.add(
        other,
        ids.map((id) => newJob(id, { spec: { ...spec, parent: { queue, id: 'parent' } } })),
      );
      return { queue, other, parent: parent! };
    };

    it('are waited for without a lease, and the job runs again at the back when they have ended', async () => {
      const { queue, parent } = await family();
      await store.add(queue, [newJob('later')]);
      expect(await settle(queue, parent, park(parent.job!, listOf(queue, ['c1', 'c2'])))).toBe(true);
      expect(await mustGet(store, queue, 'parent')).toMatchObject({
        state: 'blocked',
        attempt: 0,
        children: listOf(queue, ['c1', 'c2']),
      });
      expect(await store.count(queue)).toMatchObject({ blocked: 1, active: 0, ready: 3 });
      expect(await store.leasesOf(queue, 'w1')).toEqual([]);
      await end(queue);
      expect((await mustGet(store, queue, 'parent')).state).toBe('blocked');
      await end(queue);
      expect(names(await claim(queue, 5))).toEqual(['later', 'parent']);
      expect((await mustGet(store, queue, 'parent')).attempt).toBe(1);
    });

    it('in other queues are waited for as well', async () => {
      const { queue, other, parent } = await family(newQueue());
      expect(await settle(queue, parent, park(parent.job!, listOf(other, ['c1', 'c2'])))).toBe(true);
      await end(other);
      expect((await mustGet(store, queue, 'parent')).state).toBe('blocked');
      await end(other);
      await arrives(queue, 'parent', 'ready');
      expect(names(await claim(queue, 5))).toEqual(['parent']);
    });

    for (const place of ['the same queue', 'another queue']) {
      it(`that have already ended, in ${place}, are not waited for`, async () => {
        const { queue, other, parent } = await family(place === 'another queue' ? newQueue() : undefined);
        await end(other);
        await end(other);
        expect(await settle(queue, parent, park(parent.job!, listOf(other, ['c1', 'c2'])))).toBe(true);
        await arrives(queue, 'parent', 'ready');
        expect(names(await claim(queue, 5))).toEqual(['parent']);
      });

      it(`that must succeed and do not, in ${place}, make the job dead`, async () => {
        const { queue, other, parent } = await family(place === 'another queue' ? newQueue() : undefined);
        await settle(queue, parent, park(parent.job!, listOf(other, ['c1', 'c2'])));
        await end(other, 'dead');
        await arrives(queue, 'parent', 'dead');
        expect(await mustGet(store, queue, 'parent')).toMatchObject({ error: 'a child ended dead: c1' });
        expect(await store.count(queue)).toMatchObject({ blocked: 0 });
        await end(other);
        expect((await mustGet(store, queue, 'parent')).state).toBe('dead');
      });

      it(`that failed before the job asked to wait, in ${place}, make it dead at once`, async () => {
        const { queue, other, parent } = await family(place === 'another queue' ? newQueue() : undefined);
        await end(other, 'dead');
        await settle(queue, parent, park(parent.job!, listOf(other, ['c1', 'c2'])));
        await arrives(queue, 'parent', 'dead');
      });

      it(`that may fail, in ${place}, let the job run again`, async () => {
        const { queue, other, parent } = await family(place === 'another queue' ? newQueue() : undefined);
        await settle(queue, parent, park(parent.job!, listOf(other, ['c1', 'c2'], 'finished')));
        await end(other, 'dead');
        await store.cancel(other, ['c2']);
        await arrives(queue, 'parent', 'ready');
      });

      it(`in ${place} keep their results until the parent has ended, however short they are kept otherwise`, async () => {
        const { queue, other, parent } = await family(place === 'another queue' ? newQueue() : undefined, undefined, {
          keep: FORGETFUL_SPEC.keep,
        });
        await end(other);
        expect(await mustGet(store, other, 'c1')).toMatchObject({ state: 'done', result: '"c1"' });
        await settle(queue, parent, park(parent.job!, listOf(other, ['c1', 'c2'])));
        await end(other);
        await arrives(queue, 'parent', 'ready');
        expect(await mustGet(store, other, 'c2')).toMatchObject({ state: 'done', result: '"c2"' });
        await end(queue);
        await until('the records of the children are gone', async () => {
          await store.sweep(other, SWEEP);
          return (await store.get(other, ['c1', 'c2'])).every((job) => job === undefined);
        });
      });
    }

    it('that were never waited for are not kept after the parent has ended', async () => {
      const { queue, parent } = await family(undefined, ['c1'], { keep: FORGETFUL_SPEC.keep });
      await end(queue);
      await settle(queue, parent, finish(parent.job!));
      await until('the record of the child is gone', async () => {
        await store.sweep(queue, SWEEP);
        return (await store.get(queue, ['c1']))[0] === undefined;
      });
    });

    it('cannot be waited for with a stale lease', async () => {
      const { queue, parent } = await family();
      await settle(queue, parent, park(parent.job!, listOf(queue, ['c1'])));
      expect(await settle(queue, parent, park(parent.job!, listOf(queue, ['c2'])))).toBe(false);
      expect((await mustGet(store, queue, 'parent')).children).toEqual(listOf(queue, ['c1']));
    });

    it('are settled in one call with other outcomes', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('b'), newJob('child')]);
      const [a, b] = await claim(queue, 2);
      const both = [settlementOf(a!, park(a!.job!, listOf(queue, ['child']))), settlementOf(b!, finish(b!.job!))];
      expect(await store.settle(queue, both)).toEqual([true, true]);
      expect(await store.count(queue)).toMatchObject({ blocked: 1, done: 1, ready: 1 });
    });

    it('keep the crash count of the job, and its priority', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('p', { priority: 7 }), newJob('c')]);
      const [entry] = await claim(queue, 1);
      const outcome = { ...park(entry!.job!, listOf(queue, ['c'])), crashes: 2 };
      await settle(queue, entry!, outcome);
      await end(queue);
      expect(await mustGet(store, queue, 'p')).toMatchObject({ state: 'ready', crashes: 2, attempt: 0, priority: 7 });
    });

    it('of a job that is cancelled while it waits go on, and change nothing of it', async () => {
      const { queue, parent } = await family();
      await settle(queue, parent, park(parent.job!, listOf(queue, ['c1', 'c2'])));
      expect(await store.cancel(queue, ['parent'])).toEqual([true]);
      await end(queue);
      await end(queue);
      expect((await mustGet(store, queue, 'parent')).state).toBe('cancelled');
      expect(await store.count(queue)).toMatchObject({ blocked: 0, ready: 0 });
    });

    it('get new numbers when the job is run again', async () => {
      const { queue, parent } = await family();
      await settle(queue, parent, park(parent.job!, listOf(queue, ['c1', 'c2'])));
      await end(queue, 'dead');
      await arrives(queue, 'parent', 'dead');
      expect(await store.rerun(queue, ['parent'], ['dead'])).toEqual([true]);
      expect((await mustGet(store, queue, 'parent')).children).toEqual({ first: 2, children: [] });
    });

    it('free the group of the job while it waits for them', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { limits: { group: { concurrency: 1 } } });
      await store.add(queue, [newJob('p', { spec: { group: 'g' } }), newJob('n', { spec: { group: 'g' } })]);
      await store.add(queue, [newJob('c')]);
      const [parent] = (await claim(queue, 5)).filter((entry) => entry.job!.id === 'p');
      await settle(queue, parent!, park(parent!.job!, listOf(queue, ['c'])));
      expect(names(await claim(queue, 5))).toEqual(['n']);
    });
  });
}
