import { beforeAll, describe, expect, it } from 'vitest';
import type { Entry } from '../../../dist/job/job.js';
import { finish, lose } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { mustGet, names, newJob, settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import { type Bench, LEASE, SWEEP } from './setup.js';

/** Sessions, and what happens to the work of workers that stopped. */
export function testWorkers(bench: Bench): void {
  const { newQueue, session, joined, claim } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('workers', () => {
    it('need no sweep for a while at a queue in which nothing waits, runs or is due', async () => {
      const queue = newQueue();
      await joined(queue);
      await claim(queue, 1);
      const quietFor = async () => (await store.sweep(queue, SWEEP)).quietFor ?? 0;
      const idle = await quietFor();
      if (idle === 0) return; // a store that does not say so is swept as usual
      expect((await store.sweep(queue, { ...SWEEP, every: 1_000 })).quietFor).toBe(idle);
      await store.add(queue, [{ ...newJob('later'), delay: 500 }]);
      await claim(queue, 1);
      expect(await quietFor()).toBe(500);
      const keep = { done: { ms: 300, count: 10 }, dead: { ms: 1_000, count: 1 } };
      await store.add(queue, [newJob('a', { spec: { keep } })]);
      expect(await quietFor()).toBe(0);
      const [entry] = await claim(queue, 1);
      await claim(queue, 1);
      expect(await quietFor()).toBe(0);
      await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))]);
      expect(await quietFor()).toBe(300);
      await store.push(queue, [Buffer.from('task')]);
      expect(await quietFor()).toBe(0);
      const [task] = await claim(queue, 1);
      await claim(queue, 1);
      expect(await quietFor()).toBe(0);
      await store.settle(queue, [settlementOf(task!, finish({ attempt: 1, crashes: 0 } as never))]);
      expect(await quietFor()).toBe(300);
    });

    it('need only a short sweep at many queues in which nothing has changed', async () => {
      if (!store.sweepQuiet) return; // a store that does not have it sweeps each by itself
      const [queue, other] = [newQueue(), newQueue()];
      const quiet = () => store.sweepQuiet!([queue, other].map((name) => ({ queue: name, lease: LEASE })));
      for (const name of [queue, other]) {
        await joined(name);
        await claim(name, 1);
      }
      for (const name of [queue, other]) await store.sweep(name, SWEEP);
      expect(await quiet()).toEqual([true, true]);

      await store.add(queue, [newJob('a')]);
      expect(await quiet()).toEqual([false, true]);
      const [entry] = await claim(queue, 1);
      await claim(queue, 1);
      expect(await quiet()).toEqual([false, true]);
      await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))]);
      expect(await quiet()).toEqual([true, true]);

      // It counts as a sweep: a session that ends afterwards gets no other lease.
      bench.now += LEASE - 1;
      expect(await quiet()).toEqual([true, true]);
      bench.now += 1;
      expect(await quiet()).toEqual([false, false]);
      for (const name of [queue, other]) await store.sweep(name, SWEEP);
      expect(await store.heartbeat([session(queue), session(other)])).toEqual([false, false]);
    });

    it('have a whole sweep at a queue that nobody has swept for a lease', async () => {
      if (!store.sweepQuiet) return;
      const queue = newQueue();
      await joined(queue);
      await claim(queue, 1);
      await store.sweep(queue, SWEEP);
      bench.now += LEASE - 1;
      await store.heartbeat([session(queue)]);
      bench.now += 2;
      expect(await store.sweepQuiet([{ queue, lease: LEASE }])).toEqual([false]);
    });

    it('returns the work of a dead worker to the front, in order, exactly once', async () => {
      const queue = newQueue();
      await joined(queue, 'dead');
      await joined(queue, 'alive');
      await store.sweep(queue, SWEEP);
      await store.add(
        queue,
        ['a', 'b', 'c', 'd'].map((id) => newJob(id)),
      );
      await claim(queue, 2, 'dead');
      const [mine] = await claim(queue, 1, 'alive');
      bench.now += LEASE - 1;
      expect(await store.heartbeat([session(queue, 'alive')])).toEqual([true]);
      expect((await store.sweep(queue, SWEEP)).lost).toEqual([]);
      bench.now += 1;
      const { lost } = await store.sweep(queue, SWEEP);
      expect(names(lost)).toEqual(['b', 'a']);
      const back = () =>
        store.settle(
          queue,
          lost.map((entry) => settlementOf(entry, lose(entry.job!, 3, entry.lease.worker))),
        );
      expect(await back()).toEqual([true, true]);
      expect(await back()).toEqual([false, false]);
      expect(await mustGet(store, queue, 'a')).toMatchObject({ state: 'ready', attempt: 0, crashes: 1 });
      expect(names(await claim(queue, 9, 'alive'))).toEqual(['a', 'b', 'd']);
      expect(await store.settle(queue, [settlementOf(mine!, finish(mine!.job!))])).toEqual([true]);
      await store.sweep(queue, SWEEP);
      expect((await store.workers(queue)).map((worker) => worker.id)).toEqual(['alive']);
      expect(await store.heartbeat([session(queue, 'dead')])).toEqual([false]);
    });

    it('does not let a worker that was declared dead rejoin', async () => {
      const queue = newQueue();
      await joined(queue, 'late');
      await store.sweep(queue, SWEEP);
      await store.add(queue, [newJob('a'), newJob('b')]);
      await claim(queue, 1, 'late');
      bench.now += LEASE;
      const { lost } = await store.sweep(queue, SWEEP);
      expect(names(lost)).toEqual(['a']);
      expect(await store.heartbeat([session(queue, 'late')])).toEqual([false]);
      expect(await store.claim(session(queue, 'late'), 1)).toMatchObject({ status: 'lost', entries: [] });
      await store.settle(
        queue,
        lost.map((entry) => settlementOf(entry, lose(entry.job!, 3, 'late'))),
      );
      await store.sweep(queue, SWEEP);
      expect(await store.workers(queue)).toEqual([]);
    });

    it('also returns the raw tasks of a dead worker', async () => {
      const queue = newQueue();
      await joined(queue, 'dead');
      await store.sweep(queue, SWEEP);
      await store.push(
        queue,
        ['t1', 't2', 't3'].map((text) => Buffer.from(text)),
      );
      await claim(queue, 2, 'dead');
      bench.now += LEASE;
      const { lost } = await store.sweep(queue, SWEEP);
      expect(names(lost)).toEqual(['t2', 't1']);
      await store.settle(
        queue,
        lost.map((entry) => settlementOf(entry, { to: 'ready', attempt: 0, crashes: 0 })),
      );
      await joined(queue, 'w1');
      expect(names(await claim(queue, 5))).toEqual(['t1', 't2', 't3']);
    });

    it('extends sessions instead of ending them when no sweep ran for a whole lease', async () => {
      const queue = newQueue();
      await joined(queue, 'w1');
      await store.add(queue, [newJob('a'), newJob('r', { spec: { reservation: 100 } })]);
      await claim(queue, 2);
      await store.sweep(queue, SWEEP);
      bench.now += LEASE + 1;
      expect((await store.sweep(queue, SWEEP)).lost).toEqual([]);
      expect(await store.heartbeat([session(queue)])).toEqual([true]);
      bench.now += LEASE;
      expect(names((await store.sweep(queue, SWEEP)).lost).sort()).toEqual(['a', 'r', 'r']);
    });

    it('gives every session a whole lease after such a gap, also without a heartbeat', async () => {
      const queue = newQueue();
      await joined(queue, 'w1');
      await store.add(queue, [newJob('a')]);
      await claim(queue, 1);
      await store.sweep(queue, SWEEP);
      bench.now += LEASE + 1;
      expect((await store.sweep(queue, SWEEP)).lost).toEqual([]);
      bench.now += LEASE - 1;
      expect((await store.sweep(queue, SWEEP)).lost).toEqual([]);
    });

    it('leaves a session alone that a claim with a shorter lease has not shortened', async () => {
      const queue = newQueue();
      await store.join(queue, 'w1', { lease: 10 * LEASE, info: '{}' });
      await store.add(queue, [newJob('a')]);
      await store.claim({ queue, worker: 'w1', lease: LEASE }, 1);
      await store.sweep(queue, SWEEP);
      for (let i = 0; i < 3; i++) {
        bench.now += LEASE / 2 + 1;
        expect((await store.sweep(queue, SWEEP)).lost).toEqual([]);
      }
    });

    it('skips a queue that was swept recently', async () => {
      const queue = newQueue();
      await store.add(queue, [newJob('a', { delay: 10 })]);
      await store.sweep(queue, SWEEP);
      bench.now += 10;
      await store.sweep(queue, { lease: LEASE, every: 500 });
      expect((await store.count(queue)).scheduled).toBe(1);
      await store.sweep(queue, SWEEP);
      expect((await store.count(queue)).ready).toBe(1);
    });

    it('reports which reservations have expired', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [
        newJob('a', { spec: { reservation: 300 } }),
        newJob('b', { spec: { reservation: 900 } }),
        newJob('c'),
      ]);
      await store.sweep(queue, SWEEP);
      const [a] = await claim(queue, 3);
      bench.now += 300;
      const { lost } = await store.sweep(queue, SWEEP);
      expect(lost.map((entry) => [entry.job!.id, entry.why])).toEqual([['a', 'reservation']]);
      expect(a!.lease).toMatchObject(lost[0]!.lease);
      await store.settle(queue, [settlementOf(a!, finish(a!.job!))]);
      bench.now += 300;
      expect((await store.sweep(queue, SWEEP)).lost).toEqual([]);
    });

    it('starts the reservation of a job for which a worker waits', async () => {
      const queue = newQueue();
      await joined(queue);
      const claimed: Entry[] = [];
      const stop = await bench.listening(queue, ({ type }) => {
        if (type === 'work') void claim(queue, 3).then((entries) => claimed.push(...entries));
      });
      expect(await claim(queue, 3)).toEqual([]);
      await store.add(queue, [newJob('a', { spec: { reservation: 300 } }), newJob('b')]);
      await until('the claim', () => claimed.length === 2);
      stop();
      bench.now += 300;
      const { lost } = await store.sweep(queue, SWEEP);
      expect(lost.map(({ job, why }) => [job!.id, why])).toEqual([['a', 'reservation']]);
    });

    it('lists the workers and what each one holds', async () => {
      const queue = newQueue();
      await store.join(queue, 'w1', { lease: LEASE, info: '{"pid":1}' });
      await store.add(queue, [newJob('a'), newJob('b')]);
      await store.push(queue, [Buffer.from('t')]);
      const entries = await claim(queue, 3);
      const held = await store.leasesOf(queue, 'w1');
      expect(new Set(held.map((lease) => lease.token))).toEqual(new Set(entries.map((entry) => entry.lease.token)));
      expect(await store.workers(queue)).toEqual([
        { id: 'w1', deadline: bench.now + LEASE, holds: 3, info: '{"pid":1}' },
      ]);
      await store.leave(queue, 'w1');
      expect(await store.workers(queue)).toHaveLength(1);
      await store.settle(
        queue,
        entries.map((entry) => settlementOf(entry, { to: 'ready', attempt: 0, crashes: 0 })),
      );
      await store.leave(queue, 'w1');
      expect(await store.workers(queue)).toEqual([]);
    });
  });
}
