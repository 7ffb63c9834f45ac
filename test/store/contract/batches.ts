import { beforeAll, describe, expect, it } from 'vitest';
import { FORGETFUL_SPEC } from '../../../dist/job/spec.js';
import { die, finish } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { mustGet, names, newJob, settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import type { Bench } from './setup.js';

/** A job that stands for many others, which may be added over time. */
export function testBatches(bench: Bench): void {
  const { newQueue, joined, claim } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('batches', () => {
    const opened = async (policy: 'finished' | 'failure' = 'finished', spec = {}) => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('batch', { spec: { ...spec, batchPolicy: policy } })]);
      return queue;
    };
    const member = (queue: string, id: string, spec = {}) =>
      newJob(id, { spec: { ...spec, batch: { queue, id: 'batch' } } });
    const end = async (queue: string, how: 'done' | 'dead' = 'done') => {
      const [entry] = await claim(queue, 1);
      const outcome = how === 'done' ? finish(entry!.job!) : die(entry!.job!, 'no');
      expect(await store.settle(queue, [settlementOf(entry!, outcome)])).toEqual([true]);
    };
    const counted = (queue: string, counts: object) =>
      until(`the batch counts ${JSON.stringify(counts)}`, async () => {
        const { batch } = await mustGet(store, queue, 'batch');
        return Object.entries(counts).every(([name, value]) => batch?.[name as 'total'] === value);
      });
    const stateOf = async (queue: string) => (await mustGet(store, queue, 'batch')).state;
    const becomes = (queue: string, state: string) =>
      until(`the batch is ${state}`, async () => (await stateOf(queue)) === state);

    it('wait while they are open, even if all members have ended', async () => {
      const queue = await opened();
      expect(await mustGet(store, queue, 'batch')).toMatchObject({
        state: 'blocked',
        batch: { open: true, total: 0, done: 0, dead: 0, cancelled: 0 },
      });
      await store.add(queue, [member(queue, 'a')]);
      await end(queue);
      await counted(queue, { total: 1, done: 1 });
      expect(await stateOf(queue)).toBe('blocked');
      expect(await store.batches.close(queue, 'batch')).toBe('ready');
      expect(names(await claim(queue, 5))).toEqual(['batch']);
    });

    it('run when they are closed and the last member, in any queue, has ended', async () => {
      const [queue, other] = [await opened(), newQueue()];
      await joined(other);
      await store.add(other, [member(queue, 'a'), member(queue, 'b'), member(queue, 'c')]);
      await store.add(queue, [member(queue, 'd')]);
      expect(await store.batches.close(queue, 'batch')).toBe('blocked');
      await end(other);
      await end(other, 'dead');
      await store.cancel(other, ['c']);
      await counted(queue, { total: 4, done: 1, dead: 1, cancelled: 1, open: false });
      expect(await stateOf(queue)).toBe('blocked');
      await end(queue);
      await becomes(queue, 'ready');
      await counted(queue, { total: 4, done: 2, dead: 1, cancelled: 1 });
    });

    it('that are closed without members run at once', async () => {
      const queue = await opened();
      expect(await store.batches.close(queue, 'batch')).toBe('ready');
      expect(await store.batches.close(queue, 'batch')).toBe('ready');
    });

    it('run at the first failure if they ask for it, and go on counting', async () => {
      const [queue, other] = [await opened('failure'), newQueue()];
      await joined(other);
      await store.add(other, [member(queue, 'a'), member(queue, 'b'), member(queue, 'c')]);
      await store.batches.close(queue, 'batch');
      await end(other);
      await counted(queue, { done: 1 });
      expect(await stateOf(queue)).toBe('blocked');
      await end(other, 'dead');
      await becomes(queue, 'ready');
      await end(queue);
      await end(other);
      await counted(queue, { total: 3, done: 2, dead: 1 });
      expect(await stateOf(queue)).toBe('done');
    });

    it('that ask for the first failure run when all have succeeded', async () => {
      const queue = await opened('failure');
      await store.add(queue, [member(queue, 'a')]);
      await store.batches.close(queue, 'batch');
      await end(queue);
      await becomes(queue, 'ready');
    });

    it('take no more members when they are closed, unknown, or have ended, and nothing is added', async () => {
      const queue = await opened();
      const other = newQueue();
      await store.add(queue, [member(queue, 'a')]);
      await store.batches.close(queue, 'batch');
      await expect(store.add(queue, [newJob('x'), member(queue, 'b')])).rejects.toMatchObject({
        code: 'BATCH_CLOSED',
      });
      await expect(store.add(other, [member(queue, 'b')])).rejects.toMatchObject({ code: 'BATCH_CLOSED' });
      await expect(store.add(other, [member(other, 'b')])).rejects.toMatchObject({ code: 'NOT_FOUND' });
      expect(await store.get(queue, ['x', 'b'])).toEqual([undefined, undefined]);
      expect(await store.batches.close(other, 'batch')).toBeUndefined();
      await counted(queue, { total: 1 });
      await store.add(queue, [newJob('plain')]);
      await expect(store.add(queue, [newJob('y', { spec: { batch: { queue, id: 'plain' } } })])).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
    });

    it('do not count jobs that were not added: duplicates, and those that a full queue refuses', async () => {
      const [queue, other] = [await opened(), newQueue()];
      await joined(other);
      await store.add(other, [newJob('taken')]);
      const outcomes = await store.add(other, [member(queue, 'taken'), member(queue, 'a'), member(queue, 'b')], {
        count: 2,
      });
      expect(outcomes.map(({ outcome }) => outcome)).toEqual(['duplicate', 'created', 'full']);
      await counted(queue, { total: 1 });
      await store.batches.close(queue, 'batch');
      await end(other);
      expect(await stateOf(queue)).toBe('blocked');
      await end(other);
      await becomes(queue, 'ready');
    });

    it('count a member once, even if it is added twice', async () => {
      const queue = await opened();
      await store.add(queue, [member(queue, 'a')]);
      expect((await store.add(queue, [member(queue, 'a')]))[0]).toMatchObject({ outcome: 'duplicate' });
      await counted(queue, { total: 1 });
      await store.batches.close(queue, 'batch');
      await end(queue);
      await becomes(queue, 'ready');
    });

    it('count members whose records are not kept', async () => {
      const [queue, other] = [await opened(), newQueue()];
      await joined(other);
      await store.add(other, [member(queue, 'a', { keep: FORGETFUL_SPEC.keep })]);
      await store.batches.close(queue, 'batch');
      await end(other);
      await becomes(queue, 'ready');
      expect(await store.get(other, ['a'])).toEqual([undefined]);
    });

    it('list the members that have not ended', async () => {
      const [queue, other] = [await opened(), newQueue()];
      await joined(other);
      const ids = Array.from({ length: 300 }, (_x, i) => `m${i}`);
      await store.add(
        other,
        ids.map((id) => member(queue, id)),
      );
      await store.add(queue, [member(queue, 'here')]);
      await end(other);
      await counted(queue, { done: 1, total: 301 });
      const found = new Set<string>();
      let cursor: string | undefined;
      do {
        const page = await store.batches.openMembers(queue, 'batch', { limit: 100, cursor });
        for (const { queue: of, id } of page.members) found.add(`${of} ${id}`);
        cursor = page.cursor;
      } while (cursor !== undefined);
      expect([...found].sort()).toEqual([...ids.slice(1).map((id) => `${other} ${id}`), `${queue} here`].sort());
    });

    it('that are cancelled run no more, and let go of their members', async () => {
      const queue = await opened();
      await store.add(queue, [member(queue, 'a')]);
      expect(await store.cancel(queue, ['batch'])).toEqual([true]);
      await expect(store.add(queue, [member(queue, 'b')])).rejects.toMatchObject({ code: 'BATCH_CLOSED' });
      await end(queue);
      expect(await stateOf(queue)).toBe('cancelled');
      expect(await store.count(queue)).toMatchObject({ blocked: 0, ready: 0, done: 1 });
    });

    it('with the id of a cancelled one wait for their own members only', async () => {
      const queue = await opened('finished', { keep: FORGETFUL_SPEC.keep });
      await store.add(queue, [member(queue, 'old')]);
      await store.cancel(queue, ['batch']);
      bench.now += 1_000;
      await store.add(queue, [newJob('batch', { spec: { batchPolicy: 'finished' } })]);
      await store.add(queue, [member(queue, 'new')]);
      await store.batches.close(queue, 'batch');
      await end(queue);
      expect(await mustGet(store, queue, 'batch')).toMatchObject({ state: 'blocked', batch: { total: 1, done: 0 } });
      await end(queue);
      await becomes(queue, 'ready');
    });

    it('run when the queue of their members is obliterated', async () => {
      const [queue, other] = [await opened(), newQueue()];
      await store.add(other, [member(queue, 'a'), member(queue, 'b')]);
      await store.batches.close(queue, 'batch');
      await store.obliterate(other);
      bench.now += 120_000; // where a member may be about to be added, a missing one is not given up at once
      await until('the batch is ready', async () => {
        await store.sweep(queue, { lease: 10_000, every: 0 });
        return (await stateOf(queue)) === 'ready';
      });
      expect((await mustGet(store, queue, 'batch')).batch).toMatchObject({ total: 2, cancelled: 2 });
    });

    it('with a delay start no earlier than that', async () => {
      const queue = newQueue();
      await store.add(queue, [newJob('batch', { delay: 5_000, spec: { batchPolicy: 'finished' } })]);
      expect(await store.batches.close(queue, 'batch')).toBe('scheduled');
    });
  });
}
