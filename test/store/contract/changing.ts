import { beforeAll, describe, expect, it } from 'vitest';
import { readActions, readAttempts } from '../../../dist/job/attempt.js';
import { die, fail, finish } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { mustGet, names, newJob, settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import { type Bench, SWEEP } from './setup.js';

/** Changes made to a job or a queue from outside. */
export function testChanging(bench: Bench): void {
  const { newQueue, session, joined, claim, listening, total, finishAll } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('cancelling and retrying dead jobs', () => {
    it('cancels a job in any state that is not final', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [
        newJob('active'),
        newJob('ready'),
        newJob('later', { delay: 50 }),
        newJob('prio', { priority: -4 }),
      ]);
      await store.add(queue, [newJob('blocked', { spec: { needs: [{ queue, id: 'ready', on: 'finished' }] } })]);
      const [active] = await claim(queue, 1);
      const ids = ['active', 'later', 'prio', 'blocked', 'unknown'];
      expect(await store.cancel(queue, ids)).toEqual([true, true, true, true, false]);
      expect(await store.cancel(queue, ['active'])).toEqual([false]);
      expect(await store.settle(queue, [settlementOf(active!, finish(active!.job!))])).toEqual([false]);
      expect(await mustGet(store, queue, 'active')).toMatchObject({
        state: 'cancelled',
        attempt: 1,
        finishedAt: bench.now,
      });
      bench.now += 100;
      expect(names(await claim(queue, 9))).toEqual(['ready']);
      expect(await store.count(queue)).toMatchObject({ cancelled: 4, active: 1, ready: 0, scheduled: 0, blocked: 0 });
    });

    it('skips a job cancelled while waiting, even when its id is added again', async () => {
      const queue = newQueue();
      await joined(queue);
      const spec = { keep: { done: { ms: 0, count: 0 }, dead: { ms: 0, count: 0 } } };
      await store.add(queue, [newJob('a', { spec }), newJob('b'), newJob('c')]);
      expect(await store.cancel(queue, ['a', 'b'])).toEqual([true, true]);
      expect((await store.count(queue)).ready).toBe(1);
      await store.add(queue, [newJob('a')]);
      expect((await store.list(queue, { state: 'ready', limit: 10 })).jobs.map((job) => job.id)).toContain('c');
      const seen = [...names(await claim(queue, 2)), ...names(await claim(queue, 2)), ...names(await claim(queue, 2))];
      expect(seen).toEqual(['c', 'a']);
    });

    it('notifies the holder of a cancelled job', async () => {
      const queue = newQueue();
      await joined(queue);
      const heard: string[] = [];
      const stop = await listening(queue, (signal) => {
        if (signal.type === 'cancelled') heard.push(signal.token);
      });
      await store.add(queue, [newJob('a')]);
      const [entry] = await claim(queue, 1);
      await store.cancel(queue, ['a']);
      await until('the cancellation signal arrives', () => heard.length > 0);
      stop();
      expect(heard).toEqual([entry!.lease.token]);
    });

    it('retries only dead jobs, with reset counts, at the back', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('p', { priority: 5 }), newJob('b')]);
      const [p, a] = await claim(queue, 2);
      await store.settle(
        queue,
        [a!, p!].map((entry) => settlementOf(entry, die(entry.job!, 'no'))),
      );
      expect(await store.rerun(queue, ['a', 'b', 'x', 'p'], ['dead'])).toEqual([true, false, false, true]);
      expect(await mustGet(store, queue, 'a')).toMatchObject({ state: 'ready', attempt: 0, crashes: 0, priority: 0 });
      expect(names(await claim(queue, 3))).toEqual(['p', 'b', 'a']);
    });

    it('deletes everything when a queue is obliterated, and the queue remains usable', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('b', { delay: 5 }), newJob('p', { priority: 2 })]);
      await store.push(queue, [Buffer.from('t')]);
      const entries = await claim(queue, 2);
      await store.obliterate(queue);
      expect(await total(queue)).toBe(0);
      expect(
        await store.settle(
          queue,
          entries.map((entry) => settlementOf(entry, { to: 'ready', attempt: 0, crashes: 0 })),
        ),
      ).toEqual([false, false]);
      await store.add(queue, [newJob('a')]);
      expect(names(await claim(queue, 5))).toEqual(['a']);
    });
  });

  describe('dropping queue names', () => {
    const forgotten = async (queue: string) => {
      bench.now += 3_600_001; // longer than any process caches that it has used a name
      await store.sweep(queue, SWEEP);
      return !(await store.queues()).includes(queue);
    };

    it('drops the name of a queue that is empty and has no workers', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a')]);
      expect(await store.queues()).toContain(queue);
      await finishAll(queue, 1);
      await store.leave(queue, 'w1');
      bench.now += 3_600_001; // the record of the job expires
      await store.sweep(queue, SWEEP);
      expect(await forgotten(queue)).toBe(true);
      await store.add(queue, [newJob('a')]);
      expect(await store.queues()).toContain(queue);
      expect((await store.count(queue)).ready).toBe(1);
    });

    it('keeps the name of a queue that has content, a worker or settings', async () => {
      const uses: [string, (queue: string) => Promise<unknown>][] = [
        ['a job', (queue) => store.add(queue, [newJob('a')])],
        ['a task', (queue) => store.push(queue, [Buffer.from('t')])],
        ['a delayed job', (queue) => store.add(queue, [newJob('a', { delay: 86_400_000 })])],
        ['a limit', (queue) => store.configure(queue, { limits: { concurrency: 1 } })],
        ['a pause', (queue) => store.configure(queue, { paused: true })],
        ['a relay', (queue) => store.sources.add(queue, [], { source: 's', from: '', to: '1' })],
        ['a listener', (queue) => store.events.record(queue, 86_400_000)],
        ['a worker', (queue) => store.join(queue, 'w', { lease: 86_400_000, info: '' })],
      ];
      for (const [what, use] of uses) {
        const queue = newQueue();
        await use(queue);
        expect(await forgotten(queue), what).toBe(false);
      }
    });

    it('does not create a queue when it is only read, claimed from or swept', async () => {
      const queue = newQueue();
      await store.count(queue);
      await store.get(queue, ['a']);
      await store.claim(session(queue), 1);
      await store.cancel(queue, ['a']);
      await store.remove(queue, ['a']);
      await store.sweep(queue, SWEEP);
      await store.obliterate(queue);
      expect(await store.queues()).not.toContain(queue);
    });

    it('drops the name of a queue that is obliterated', async () => {
      const queue = newQueue();
      await store.add(queue, [newJob('a')]);
      await store.obliterate(queue);
      expect(await forgotten(queue)).toBe(true);
    });
  });

  describe('removing', () => {
    it('deletes the records of ended jobs only', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [
        newJob('done'),
        newJob('kept', { spec: { keep: { done: { ms: 5e6, count: 9 }, dead: { ms: 1, count: 1 } } } }),
      ]);
      await finishAll(queue, 2);
      await store.add(queue, [newJob('gone'), newJob('active'), newJob('ready'), newJob('later', { delay: 1_000 })]);
      await store.cancel(queue, ['gone']);
      await claim(queue, 1);
      expect(
        await store.remove(queue, ['done', 'kept', 'gone', 'active', 'ready', 'later', 'unknown', 'done']),
      ).toEqual([true, true, true, false, false, false, false, false]);
      expect((await store.get(queue, ['done', 'kept', 'gone'])).every((job) => job === undefined)).toBe(true);
      expect(await total(queue)).toBe(3);
      for (const state of ['done', 'cancelled'] as const)
        expect(await store.list(queue, { state, limit: 5 })).toEqual({ jobs: [], cursor: undefined });
      expect(await store.add(queue, [newJob('done')])).toEqual([{ outcome: 'created' }]);
    });

    it('say who cancelled, retried or changed a job, if they are told', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('b'), newJob('c')]);
      const [a] = await claim(queue, 1);
      await store.settle(queue, [settlementOf(a!, die(a!.job!, 'no'))]);
      expect(await store.rerun(queue, ['a'], ['dead'], 'ada "at" the\ndesk')).toEqual([true]);
      expect(await store.cancel(queue, ['a', 'b'], 'bob')).toEqual([true, true]);
      expect(await store.cancel(queue, ['c'])).toEqual([true]);
      const [first, second, third] = await store.get(queue, ['a', 'b', 'c']);
      const at = bench.now;
      expect(readActions(first!.attempts!)).toEqual([
        { action: 'retried', at, by: 'ada "at" the\ndesk' },
        { action: 'cancelled', at, by: 'bob' },
      ]);
      expect(readAttempts(first!.attempts!)).toEqual([]);
      expect(readActions(second!.attempts!)).toEqual([{ action: 'cancelled', at, by: 'bob' }]);
      expect(third!.attempts).toBeUndefined();
      await store.add(queue, [newJob('d', { delay: 5_000 }), newJob('e', { delay: 5_000 })]);
      expect(await store.update(queue, 'd', { payload: '1', priority: 3, delay: 1_000, by: 'ada' })).toBe('scheduled');
      expect(await store.update(queue, 'd', { delay: 0, by: 'bob' })).toBe('scheduled');
      expect(await store.update(queue, 'a', { delay: 0, by: 'bob' })).toBe('cancelled');
      await store.update(queue, 'e', { delay: 0 });
      expect(readActions((await mustGet(store, queue, 'd')).attempts!)).toEqual([
        { action: 'changed', at, by: 'ada', detail: 'payload, priority, time' },
        { action: 'changed', at, by: 'bob', detail: 'due now' },
      ]);
      expect(readActions((await mustGet(store, queue, 'a')).attempts!)).toHaveLength(2);
      expect((await mustGet(store, queue, 'e')).attempts).toBeUndefined();
    });

    it('runs jobs in any final state again, with fresh counts, behind what waits', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('done'), newJob('dead'), newJob('cancelled')]);
      const [first, second] = await claim(queue, 2);
      await store.settle(queue, [
        settlementOf(first!, finish(first!.job!, '"result"')),
        settlementOf(second!, die(second!.job!, 'no')),
      ]);
      await store.cancel(queue, ['cancelled']);
      await store.add(queue, [newJob('waits')]);
      const ids = ['done', 'dead', 'cancelled', 'waits', 'none'];
      expect(await store.rerun(queue, ids, ['dead'])).toEqual([false, true, false, false, false]);
      expect(await store.rerun(queue, ids, ['done', 'dead', 'cancelled'])).toEqual([true, false, true, false, false]);
      expect(await store.count(queue)).toMatchObject({ ready: 4, done: 0, dead: 0, cancelled: 0 });
      const job = await mustGet(store, queue, 'done');
      expect(job).toMatchObject({ state: 'ready', attempt: 0 });
      expect([job.result, job.finishedAt, job.startedAt]).toEqual([undefined, undefined, undefined]);
      expect(names(await claim(queue, 9))).toEqual(['waits', 'dead', 'done', 'cancelled']);
    });
  });

  describe('changing a job that waits', () => {
    it('replaces its payload and keeps its place', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a', { spec: { headers: { h: 'x' }, group: undefined } }), newJob('b')]);
      expect(await store.update(queue, 'a', { payload: '{"new":"päyload"}' })).toBe('ready');
      const bytes = Buffer.from([0, 255, 10]);
      expect(await store.update(queue, 'b', { payload: bytes })).toBe('ready');
      const [a, b] = await claim(queue, 2);
      expect([a!.job!.id, a!.job!.payload, a!.job!.spec.headers]).toEqual(['a', '{"new":"päyload"}', { h: 'x' }]);
      expect(Buffer.from(b!.job!.payload as Uint8Array)).toEqual(bytes);
      await bench.store.settle(
        queue,
        [a!, b!].map((entry) => settlementOf(entry, finish(entry.job!))),
      );
      // the count of waiting bytes is right: a queue with room for one byte takes it
      expect(await store.push(queue, [Buffer.from('x')], { bytes: 1 })).toBe(true);
    });

    it('moves it to the back of its new priority', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('b'), newJob('high', { priority: 5 }), newJob('c')]);
      await store.update(queue, 'a', { priority: 5 });
      await store.update(queue, 'high', { priority: 0 });
      await store.update(queue, 'b', { priority: 0 });
      expect(await store.count(queue)).toMatchObject({ ready: 4 });
      expect(names(await claim(queue, 9))).toEqual(['a', 'b', 'c', 'high']);
    });

    it('makes it due later, or now, in whatever waiting state it is', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('b', { delay: 60_000 }), newJob('c')]);
      const needs = { spec: { needs: [{ queue, id: 'c', on: 'success' as const }] } };
      await store.add(queue, [newJob('blocked', needs)]);
      expect(await store.update(queue, 'a', { delay: 1_000 })).toBe('ready');
      expect(await store.update(queue, 'b', { at: bench.now })).toBe('scheduled');
      expect(await store.update(queue, 'blocked', { delay: 5_000 })).toBe('blocked');
      expect(await store.count(queue)).toMatchObject({ ready: 2, scheduled: 1, blocked: 1 });
      expect((await mustGet(store, queue, 'a')).runAt).toBe(bench.now + 1_000);
      const entries = await claim(queue, 9);
      expect(names(entries)).toEqual(['c', 'b']);
      await store.settle(
        queue,
        entries.map((entry) => settlementOf(entry, finish(entry.job!))),
      );
      expect(await store.count(queue)).toMatchObject({ scheduled: 2, blocked: 0 });
      bench.now += 1_000;
      expect(names(await claim(queue, 9))).toEqual(['a']);
      bench.now += 4_000;
      expect(names(await claim(queue, 9))).toEqual(['blocked']);
    });

    it('keeps the attempts of one that waits for its retry, and the group of one that has one', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a', { spec: { group: 'g' } }), newJob('b', { spec: { group: 'g' } })]);
      const [a] = await claim(queue, 1);
      await store.settle(queue, [settlementOf(a!, fail(a!.job!, 'oops', { random: () => 0, now: 0, delay: 60_000 }))]);
      expect(await store.update(queue, 'a', { delay: 0 })).toBe('scheduled');
      await store.update(queue, 'b', { delay: 0 });
      const again = await claim(queue, 9);
      expect(again.map(({ job }) => [job!.id, job!.attempt, job!.spec.group])).toEqual([
        ['a', 2, 'g'],
        ['b', 1, 'g'],
      ]);
    });

    it('is refused, with its state, once it has started or ended', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('b')]);
      await claim(queue, 1);
      await store.cancel(queue, ['b']);
      expect(await store.update(queue, 'a', { payload: '1', delay: 0, priority: 3 })).toBe('active');
      expect(await store.update(queue, 'b', { payload: '1' })).toBe('cancelled');
      expect(await store.update(queue, 'none', { payload: '1' })).toBeUndefined();
      expect((await mustGet(store, queue, 'a')).payload).not.toBe('1');
    });
  });
}
