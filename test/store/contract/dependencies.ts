import { beforeAll, describe, expect, it } from 'vitest';
import { FORGETFUL_SPEC } from '../../../dist/job/spec.js';
import { die, fail, finish, release } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { mustGet, names, newJob, settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import { type Bench, random, SWEEP } from './setup.js';

/** Jobs that wait for other jobs. */
export function testDependencies(bench: Bench): void {
  const { newQueue, joined, claim, total } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('dependencies', () => {
    const needs = (...ups: { queue: string; id: string; on?: 'success' | 'finished' }[]) => ({
      spec: { needs: ups.map((up) => ({ on: 'success' as const, ...up })) },
    });
    const end = async (queue: string, how: 'done' | 'dead') => {
      const [entry] = await claim(queue, 1);
      const move = how === 'done' ? finish(entry!.job!) : die(entry!.job!, 'no');
      expect(await store.settle(queue, [settlementOf(entry!, move)])).toEqual([true]);
      return entry!.job!.id;
    };
    /** Across slots, the update is sent after the settle: wait until it has arrived. */
    const arrives = async (queue: string, id: string, state: string) => {
      for (let i = 0; i < 300; i++) {
        if ((await mustGet(store, queue, id)).state === state) return;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      expect((await mustGet(store, queue, id)).state).toBe(state);
    };

    it('block a job until all its upstreams are done', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('b'), newJob('c', needs({ queue, id: 'a' }, { queue, id: 'b' }))]);
      expect((await mustGet(store, queue, 'c')).state).toBe('blocked');
      await end(queue, 'done');
      expect((await store.count(queue)).blocked).toBe(1);
      await end(queue, 'done');
      expect(names(await claim(queue, 5))).toEqual(['c']);
    });

    it('work across queues', async () => {
      const [up, down] = [newQueue(), newQueue()];
      await joined(up);
      await joined(down);
      await store.add(up, [newJob('u1'), newJob('u2')]);
      await store.add(down, [newJob('d', needs({ queue: up, id: 'u1' }, { queue: up, id: 'u2' }))]);
      await end(up, 'done');
      expect((await mustGet(store, down, 'd')).state).toBe('blocked');
      await end(up, 'done');
      await arrives(down, 'd', 'ready');
      expect(names(await claim(down, 5))).toEqual(['d']);
    });

    it('resolve when an upstream in another queue is deleted on completion, even during sweeps', async () => {
      const [up, down] = [newQueue(), newQueue()];
      await joined(up);
      await store.add(up, [newJob('u', { spec: FORGETFUL_SPEC })]);
      await store.add(down, [newJob('d', needs({ queue: up, id: 'u' }))]);
      const [entry] = await claim(up, 1);
      const settling = store.settle(up, [settlementOf(entry!, finish(entry!.job!))]);
      await Promise.all([settling, store.sweep(down, SWEEP), store.sweep(down, SWEEP)]);
      await arrives(down, 'd', 'ready');
    });

    it('block again when the id of a cancelled dependent is added again', async () => {
      const queue = newQueue();
      const spec = { needs: [{ queue, id: 'a', on: 'success' as const }], keep: FORGETFUL_SPEC.keep };
      await store.add(queue, [newJob('a'), newJob('b', { spec })]);
      await store.cancel(queue, ['b']);
      await store.add(queue, [newJob('b', { spec })]);
      expect((await mustGet(store, queue, 'b')).state).toBe('blocked');
    });

    it('cancel dependents that need success and run those that need any end, along the whole chain', async () => {
      const [queue, other] = [newQueue(), newQueue()];
      await joined(queue);
      await store.add(queue, [
        newJob('a'),
        newJob('b', needs({ queue, id: 'a' })),
        newJob('c', needs({ queue, id: 'b' })),
      ]);
      await store.add(queue, [newJob('always', needs({ queue, id: 'c', on: 'finished' }))]);
      await store.add(other, [newJob('far', needs({ queue, id: 'c' }))]);
      await end(queue, 'dead');
      await arrives(other, 'far', 'cancelled');
      expect(await mustGet(store, queue, 'b')).toMatchObject({
        state: 'cancelled',
        error: expect.stringContaining('a'),
      });
      expect((await mustGet(store, queue, 'c')).state).toBe('cancelled');
      expect(names(await claim(queue, 5))).toEqual(['always']);
    });

    it('cancel along a chain that alternates between queues', async () => {
      const [a, b] = [newQueue(), newQueue()];
      await joined(a);
      await store.add(a, [newJob('first')]);
      await store.add(b, [newJob('second', needs({ queue: a, id: 'first' }))]);
      await store.add(a, [newJob('third', needs({ queue: b, id: 'second' }))]);
      await store.add(b, [newJob('fourth', needs({ queue: a, id: 'third' }))]);
      await end(a, 'dead');
      await arrives(b, 'fourth', 'cancelled');
      expect((await mustGet(store, a, 'third')).state).toBe('cancelled');
      // A job added after the whole chain has ended is resolved immediately.
      await store.add(a, [newJob('fifth', needs({ queue: b, id: 'fourth' }))]);
      expect((await mustGet(store, a, 'fifth')).state).toBe('cancelled');
    });

    it('unblock a job that needs thousands of jobs of another queue', async () => {
      const [up, down] = [newQueue(), newQueue()];
      await joined(up);
      const ids = Array.from({ length: 3_000 }, (_x, i) => `u${i}`);
      for (let i = 0; i < ids.length; i += 1_000) {
        await store.add(
          up,
          ids.slice(i, i + 1_000).map((id) => newJob(id)),
        );
      }
      await store.add(down, [newJob('d', needs(...ids.map((id) => ({ queue: up, id }))))]);
      for (let i = 0; i < 3; i++) await bench.finishAll(up, 1_000);
      await arrives(down, 'd', 'ready');
    });

    it('are not affected by stale reports in a batch', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('b', needs({ queue, id: 'a' }))]);
      const [a] = await claim(queue, 1);
      await store.settle(queue, [settlementOf(a!, release(a!.job!))]);
      const stale = [finish(a!.job!), fail(a!.job!, 'x', { random, now: 0 })].map((move) => settlementOf(a!, move));
      expect(await store.settle(queue, stale)).toEqual([false, false]);
      expect(await store.count(queue)).toMatchObject({ blocked: 1, ready: 1 });
    });

    it('propagate the cancellation of an upstream', async () => {
      const queue = newQueue();
      await store.add(queue, [newJob('a'), newJob('b', needs({ queue, id: 'a' }))]);
      await store.cancel(queue, ['a']);
      expect((await mustGet(store, queue, 'b')).state).toBe('cancelled');
    });

    it('take upstreams that have already ended into account', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('good'), newJob('bad')]);
      await end(queue, 'done');
      await end(queue, 'dead');
      await store.add(queue, [
        newJob('runs', needs({ queue, id: 'good' })),
        newJob('skipped', needs({ queue, id: 'good' }, { queue, id: 'bad' })),
        newJob('also', needs({ queue, id: 'bad', on: 'finished' })),
      ]);
      expect((await mustGet(store, queue, 'skipped')).state).toBe('cancelled');
      expect(names(await claim(queue, 5))).toEqual(['runs', 'also']);
    });

    it('refuse an unknown upstream without changing anything', async () => {
      const [queue, other] = [newQueue(), newQueue()];
      await store.add(queue, [newJob('a')]);
      const adding = store.add(queue, [newJob('b'), newJob('c', needs({ queue, id: 'nope' }))]);
      await expect(adding).rejects.toMatchObject({
        code: 'UNKNOWN_UPSTREAM',
        message: expect.stringContaining('nope'),
      });
      await expect(store.add(other, [newJob('d', needs({ queue, id: 'gone' }))])).rejects.toMatchObject({
        code: 'UNKNOWN_UPSTREAM',
      });
      expect(await store.count(queue)).toMatchObject({ ready: 1, blocked: 0 });
      expect(await total(other)).toBe(0);
    });

    it('keep the delay of a job whose upstreams end early', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('b', { delay: 500, ...needs({ queue, id: 'a' }) })]);
      await end(queue, 'done');
      expect(await mustGet(store, queue, 'b')).toMatchObject({ state: 'scheduled', runAt: bench.now + 500 });
    });

    it('release thousands of dependents of one job', async () => {
      const [queue, other] = [newQueue(), newQueue()];
      await joined(queue);
      await store.add(queue, [newJob('hub')]);
      const fan = (at: string) =>
        Array.from({ length: 900 }, (_x, i) => newJob(`${at}${i}`, needs({ queue, id: 'hub' })));
      await store.add(queue, fan('x'));
      await store.add(queue, fan('y'));
      await store.add(other, fan('z'));
      await end(queue, 'done');
      for (let i = 0; i < 500; i++) {
        if ((await store.count(queue)).blocked + (await store.count(other)).blocked === 0) break;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      expect((await store.count(queue)).ready).toBe(1_800);
      expect((await store.count(other)).ready).toBe(900);
    });

    it('can be listed from the upstream job while it has not ended: the first ones, and how many there are', async () => {
      const [queue, other] = [newQueue(), newQueue()];
      await joined(queue);
      await store.add(queue, [newJob('up'), newJob('alone')]);
      const needs = { spec: { needs: [{ queue, id: 'up', on: 'success' as const }] } };
      await store.add(queue, [newJob('d1', needs), newJob('d2', needs)]);
      await store.add(other, [newJob('d3', needs)]);
      const { jobs, total } = await store.dependents(queue, 'up', 10);
      expect(total).toBe(3);
      expect(jobs.map((job) => `${job.queue} ${job.id}`).sort()).toEqual(
        [`${queue} d1`, `${queue} d2`, `${other} d3`].sort(),
      );
      const few = await store.dependents(queue, 'up', 2);
      expect([few.jobs.length, few.total]).toEqual([2, 3]);
      expect(await store.dependents(queue, 'alone', 10)).toEqual({ jobs: [], total: 0 });
      expect(await store.dependents(queue, 'never', 10)).toEqual({ jobs: [], total: 0 });
      await bench.finishAll(queue, 2);
      await until('the dependents are told', async () => (await store.dependents(queue, 'up', 10)).total === 0);
    });
  });
}
