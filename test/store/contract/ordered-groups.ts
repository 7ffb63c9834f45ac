import { beforeAll, describe, expect, it } from 'vitest';
import type { Entry, Job } from '../../../dist/job/job.js';
import { die, fail, finish, lose, type Outcome, park, release, snooze } from '../../../dist/job/transitions.js';
import type { Signal, Store } from '../../../dist/store/store.js';
import { names, newJob, settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import { type Bench, random, SWEEP } from './setup.js';

const ORDERED = { group: { ordered: true } } as const;

/** Groups whose next job waits until the one before has ended for good. */
export function testOrderedGroups(bench: Bench): void {
  const { newQueue, session, joined, claim } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('ordered groups', () => {
    const ofGroup = (group: string, ids: string[], priority = 0) =>
      ids.map((id) => newJob(id, { priority, spec: { group } }));
    const failed = (job: Job) => fail(job, 'x', { random, now: 0, delay: 50 });
    const settle = (queue: string, entries: Entry[], how: (job: Job) => Outcome) =>
      store.settle(
        queue,
        entries.map((entry) => settlementOf(entry, how(entry.job!))),
      );
    const next = async (queue: string) => names(await claim(queue, 9));
    const orderedQueue = async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { limits: ORDERED });
      return queue;
    };

    it('are a setting that is stored and can be removed', async () => {
      const queue = await orderedQueue();
      expect((await store.settings(queue)).limits).toEqual(ORDERED);
      const limits = { concurrency: 3, group: { ordered: true, rate: { count: 1, per: 10 } } } as const;
      await store.configure(queue, { limits });
      expect((await store.settings(queue)).limits).toEqual(limits);
      await store.configure(queue, { limits: {} });
      expect((await store.settings(queue)).limits).toEqual({});
    });

    it.each([
      ['a retry', failed],
      ['a snooze', (job: Job) => snooze(job, 50)],
    ])('wait for %s of the job that has started, and go on with it', async (_name, how) => {
      const queue = await orderedQueue();
      await store.add(queue, [...ofGroup('A', ['a0', 'a1']), ...ofGroup('B', ['b0', 'b1'])]);
      const first = await claim(queue, 9);
      expect(names(first)).toEqual(['a0', 'b0']);
      await settle(queue, [first[0]!], how);
      const parked = await store.claim(session(queue), 9);
      expect(parked).toMatchObject({ entries: [], more: false, nextAt: bench.now + 50 });
      await settle(queue, [first[1]!], finish);
      expect(await next(queue)).toEqual(['b1']);
      bench.now += 50;
      const again = await claim(queue, 9);
      expect(names(again)).toEqual(['a0']);
      expect(await next(queue)).toEqual([]);
      await settle(queue, again, finish);
      expect(await next(queue)).toEqual(['a1']);
    });

    it('go on with a job that was released before jobs of a higher priority', async () => {
      const queue = await orderedQueue();
      await store.add(queue, ofGroup('A', ['a0', 'a1']));
      const first = await claim(queue, 9);
      await store.add(queue, ofGroup('A', ['high'], 5));
      await settle(queue, first, release);
      const again = await claim(queue, 9);
      expect(names(again)).toEqual(['a0']);
      await settle(queue, again, failed);
      bench.now += 50;
      const third = await claim(queue, 9);
      expect(names(third)).toEqual(['a0']);
      await settle(queue, third, (job) => die(job, 'x'));
      const fourth = await claim(queue, 9);
      expect(names(fourth)).toEqual(['high']);
      await settle(queue, fourth, finish);
      expect(await next(queue)).toEqual(['a1']);
    });

    it('keep their order when a worker is lost', async () => {
      const queue = await orderedQueue();
      await store.add(queue, ofGroup('A', ['a0', 'a1']));
      expect(await next(queue)).toEqual(['a0']);
      await joined(queue, 'w2');
      let lost: Entry[] = [];
      for (let i = 0; i < 3 && lost.length === 0; i++) {
        bench.now += SWEEP.lease / 2;
        await store.heartbeat([session(queue, 'w2')]);
        expect(names(await claim(queue, 9, 'w2'))).toEqual([]);
        ({ lost } = await store.sweep(queue, SWEEP));
      }
      await settle(queue, lost, (job) => lose(job, 3, 'w1'));
      const again = await claim(queue, 9, 'w2');
      expect(names(again)).toEqual(['a0']);
      await settle(queue, again, finish);
      expect(names(await claim(queue, 9, 'w2'))).toEqual(['a1']);
    });

    it.each(['done', 'dead'] as const)('wait for a job that waits for its child, which ends %s', async (how) => {
      const queue = await orderedQueue();
      await store.add(queue, ofGroup('A', ['a0', 'a1']));
      const [parent] = await claim(queue, 9);
      await store.add(queue, [newJob('child', { spec: { parent: { queue, id: 'a0' } } })]);
      const list = { first: 0, children: [{ queue, id: 'child', on: 'success' as const }] };
      await settle(queue, [parent!], (job) => park(job, list));
      const child = await claim(queue, 9);
      expect(names(child)).toEqual(['child']);
      expect(await store.claim(session(queue), 9)).toMatchObject({ entries: [], more: false });
      await settle(queue, child, how === 'done' ? finish : (job) => die(job, 'x'));
      const again = await claim(queue, 9);
      expect(names(again)).toEqual([how === 'done' ? 'a0' : 'a1']);
      await settle(queue, again, finish);
      expect(await next(queue)).toEqual(how === 'done' ? ['a1'] : []);
    });

    it('go on when the job they wait for is dead, and take it last when it is retried', async () => {
      const queue = await orderedQueue();
      await store.add(queue, ofGroup('A', ['a0', 'a1', 'a2']));
      await settle(queue, await claim(queue, 9), (job) => die(job, 'x'));
      await store.rerun(queue, ['a0'], ['dead']);
      const served: string[] = [];
      for (let i = 0; i < 4; i++) {
        const entries = await claim(queue, 9);
        served.push(...names(entries));
        if (entries.length > 0) await settle(queue, entries, finish);
      }
      expect(served).toEqual(['a1', 'a2', 'a0']);
    });

    it.each(['cancelled', 'reported as done'] as const)(
      'go on at once, with a signal, when the job they wait for is %s',
      async (how) => {
        const queue = await orderedQueue();
        const heard: Signal[] = [];
        const stop = await bench.listening(queue, (signal) => heard.push(signal));
        await store.add(queue, ofGroup('A', ['a0', 'a1']));
        await settle(queue, await claim(queue, 9), failed);
        expect(await next(queue)).toEqual([]);
        const before = heard.length;
        const end = how === 'cancelled' ? store.cancel(queue, ['a0']) : store.reportSuccess(queue, ['a0']);
        expect(await end).toEqual([true]);
        await until('a signal of work', () => heard.slice(before).some(({ type }) => type === 'work'));
        expect(await next(queue)).toEqual(['a1']);
        stop();
      },
    );

    it('do not wait for jobs that have a delay and have never started', async () => {
      const queue = await orderedQueue();
      await store.add(queue, [newJob('later', { delay: 50, spec: { group: 'A' } }), ...ofGroup('A', ['a0', 'a1'])]);
      const first = await claim(queue, 9);
      expect(names(first)).toEqual(['a0']);
      bench.now += 50;
      await settle(queue, first, finish);
      const second = await claim(queue, 9);
      expect(names(second)).toEqual(['a1']);
      await settle(queue, second, finish);
      expect(await next(queue)).toEqual(['later']);
    });

    it('still wait for a job whose time or priority is changed while it waits', async () => {
      const queue = await orderedQueue();
      await store.add(queue, ofGroup('A', ['a0', 'a1']));
      await settle(queue, await claim(queue, 9), failed);
      await store.update(queue, 'a0', { delay: 200, priority: -3 });
      bench.now += 100;
      expect(await next(queue)).toEqual([]);
      await store.update(queue, 'a0', { delay: 0 });
      expect(await next(queue)).toEqual(['a0']);
    });

    it('may be switched on and off while jobs run and wait for retries', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, ofGroup('A', ['a0', 'a1', 'a2', 'a3', 'a4']));
      const running = await claim(queue, 2);
      await store.configure(queue, { limits: ORDERED });
      expect(await next(queue)).toEqual([]);
      await settle(queue, [running[0]!], failed);
      expect(await next(queue)).toEqual([]);
      await settle(queue, [running[1]!], failed);
      expect(await next(queue)).toEqual([]);
      await store.configure(queue, { limits: {} });
      const free = await claim(queue, 1);
      expect(names(free)).toEqual(['a2']);
      bench.now += 50;
      await store.configure(queue, { limits: ORDERED });
      await settle(queue, free, finish);
      const served: string[] = [];
      for (let i = 0; i < 6; i++) {
        const entries = await claim(queue, 9);
        expect(entries.length).toBeLessThan(2);
        served.push(...names(entries));
        await settle(queue, entries, finish);
      }
      expect(served.sort()).toEqual(['a0', 'a1', 'a3', 'a4']);
    });

    it('are empty after the queue was obliterated', async () => {
      const queue = await orderedQueue();
      await store.add(queue, ofGroup('A', ['a0', 'a1']));
      await settle(queue, await claim(queue, 9), failed);
      await store.obliterate(queue);
      await store.add(queue, ofGroup('A', ['z0']));
      expect(await next(queue)).toEqual(['z0']);
    });
  });
}
