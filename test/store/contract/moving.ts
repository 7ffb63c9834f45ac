import { beforeAll, describe, expect, it } from 'vitest';
import { readActions } from '../../../dist/job/attempt.js';
import { die, fail, finish, park } from '../../../dist/job/transitions.js';
import type { Signal, Store } from '../../../dist/store/store.js';
import { mustGet, names, newJob, settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import { type Bench, random } from './setup.js';

/** Moving jobs to another queue. */
export function testMoving(bench: Bench): void {
  const { newQueue, joined, claim, total } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('move', () => {
    const pair = async () => {
      const [from, to] = [newQueue(), newQueue()];
      await joined(from);
      await joined(to);
      return { from, to };
    };

    it('takes ready jobs of any priority to the back of the other queue, as they are', async () => {
      const { from, to } = await pair();
      await store.add(to, [newJob('first')]);
      const payload = '{"big":"payload"}';
      await store.add(from, [newJob('a', { payload }), newJob('b', { priority: 3 }), newJob('stays')]);
      const before = await mustGet(store, from, 'a');
      expect(await store.move(from, ['a', 'b'], to)).toEqual(['moved', 'moved']);
      expect(await store.get(from, ['a', 'b'])).toEqual([undefined, undefined]);
      expect(await mustGet(store, to, 'a')).toMatchObject({ queue: to, state: 'ready', payload, spec: before.spec });
      expect((await mustGet(store, to, 'a')).createdAt).toBe(before.createdAt);
      expect(names(await claim(to, 9))).toEqual(['b', 'first', 'a']);
      expect(names(await claim(from, 9))).toEqual(['stays']);
    });

    it('keeps the time, the counts and the history of a job that waits for its retry', async () => {
      const { from, to } = await pair();
      await store.add(from, [newJob('a', { spec: { attempts: 3 } }), newJob('later', { delay: 500 })]);
      const [entry] = await claim(from, 1);
      await store.recordProgress(from, entry!.lease, { progress: '5', log: 'line\n' });
      const outcome = fail(entry!.job!, 'broken', { random, now: 0, delay: 100 });
      await store.settle(from, [{ ...settlementOf(entry!, outcome), attempt: '{"n":1}\n' }]);
      const before = await mustGet(store, from, 'a');
      expect(await store.move(from, ['a', 'later'], to)).toEqual(['moved', 'moved']);
      expect(await mustGet(store, to, 'a')).toEqual({ ...before, queue: to });
      expect((await store.count(to)).scheduled).toBe(2);
      expect(await total(from)).toBe(0);
      bench.now += 100;
      const [again] = await claim(to, 5);
      expect(again!.job).toMatchObject({ id: 'a', attempt: 2, spec: { attempts: 3 } });
    });

    it('makes dead jobs ready in the other queue, with fresh attempts', async () => {
      const { from, to } = await pair();
      await store.add(from, [newJob('a')]);
      const entries = await claim(from, 1);
      await store.settle(from, [settlementOf(entries[0]!, die(entries[0]!.job!, 'x'))]);
      expect(await store.move(from, ['a'], to)).toEqual(['moved']);
      expect(await store.count(from)).toMatchObject({ dead: 0, ready: 0 });
      expect(await mustGet(store, to, 'a')).toMatchObject({ state: 'ready', attempt: 0, crashes: 0 });
    });

    it('takes jobs that have run before to a queue where new jobs wait, behind those', async () => {
      const { from, to } = await pair();
      await store.add(to, [newJob('first')]);
      await store.add(from, [newJob('dead'), newJob('failed')]);
      await store.add(to, [newJob('second')]);
      const [dead, failed] = await claim(from, 2);
      await store.recordProgress(from, failed!.lease, { progress: '5', log: 'line\n' });
      await store.watchForEnd(from, ['dead']);
      const outcome = fail(failed!.job!, 'broken', { random, now: 0, delay: 100 });
      await store.settle(from, [settlementOf(dead!, die(dead!.job!, 'x')), settlementOf(failed!, outcome)]);
      expect(await store.move(from, ['dead', 'failed'], to, 'ada')).toEqual(['moved', 'moved']);
      expect(await mustGet(store, to, 'failed')).toMatchObject({ progress: '5', log: expect.stringContaining('line') });
      await store.add(to, [newJob('third')]);
      expect(names(await claim(to, 1))).toEqual(['first']);
      expect(names(await claim(to, 9))).toEqual(['second', 'dead', 'third']);
      bench.now += 100;
      const [again] = await claim(to, 9);
      expect(again!.job).toMatchObject({ id: 'failed', attempt: 2 });
      expect(await store.count(to)).toMatchObject({ active: 5, ready: 0, scheduled: 0 });
      expect(await total(from)).toBe(0);
    });

    it('refuses jobs that run, have ended, or are not there', async () => {
      const { from, to } = await pair();
      await store.add(from, [newJob('runs'), newJob('done'), newJob('cancelled')]);
      await store.cancel(from, ['cancelled']);
      const entries = await claim(from, 2);
      await store.settle(from, [settlementOf(entries[1]!, finish(entries[1]!.job!))]);
      const outcomes = await store.move(from, ['runs', 'done', 'cancelled', 'never'], to);
      expect(outcomes).toEqual(['started', 'started', 'started', 'unknown']);
      expect(await total(to)).toBe(0);
      expect(await store.move(newQueue(), ['x'], to)).toEqual(['unknown']);
    });

    it('refuses jobs that need others or are needed by them', async () => {
      const { from, to } = await pair();
      const need = { queue: from, id: 'up', on: 'success' as const };
      await store.add(from, [newJob('up'), newJob('down', { spec: { needs: [need] } })]);
      expect(await store.move(from, ['up', 'down'], to)).toEqual(['linked', 'linked']);
      const [up] = await claim(from, 1);
      await store.settle(from, [settlementOf(up!, finish(up!.job!))]);
      expect(await store.move(from, ['down'], to)).toEqual(['linked']);
      expect(await total(from)).toBe(2);
    });

    it('refuses jobs that have a parent, and jobs that have had children', async () => {
      const { from, to } = await pair();
      await store.add(from, [newJob('parent')]);
      const [parent] = await claim(from, 1);
      await store.add(from, [newJob('child', { spec: { parent: { queue: from, id: 'parent' } } })]);
      const list = { first: 0, children: [{ queue: from, id: 'child', on: 'finished' as const }] };
      await store.settle(from, [settlementOf(parent!, park(parent!.job!, list))]);
      expect(await store.move(from, ['parent', 'child'], to)).toEqual(['linked', 'linked']);
      const [child] = await claim(from, 1);
      await store.settle(from, [settlementOf(child!, finish(child!.job!))]);
      expect(await store.move(from, ['parent'], to)).toEqual(['linked']);
      expect(await total(to)).toBe(0);
    });

    it('refuses an id or a unique key that is taken in the other queue, leaves the job where it is, and says who moved the others', async () => {
      const { from, to } = await pair();
      const unique = { key: 'k', scope: 'alive', ttl: 0 } as const;
      await store.add(to, [newJob('same'), newJob('holder', { spec: { unique } })]);
      await store.add(from, [newJob('same'), newJob('other', { spec: { unique } }), newJob('free')]);
      expect(await store.move(from, ['same', 'other', 'free'], to, 'ada')).toEqual(['taken', 'taken', 'moved']);
      const said = [{ action: 'moved', at: bench.now, by: 'ada', detail: from }];
      expect(readActions((await mustGet(store, to, 'free')).attempts!)).toEqual(said);
      for (const job of await store.get(from, ['same', 'other'])) expect(job!.attempts).toBeUndefined();
      expect((await store.count(from)).ready).toBe(2);
      expect((await store.count(to)).ready).toBe(3);
      expect(names(await claim(from, 9)).sort()).toEqual(['other', 'same']);
      const again = newJob('another', { spec: { unique } });
      expect(await store.add(from, [again])).toEqual([{ outcome: 'duplicate', id: 'other' }]);
    });

    it('takes a unique key along', async () => {
      const { from, to } = await pair();
      const unique = { key: 'k', scope: 'alive', ttl: 0 } as const;
      await store.add(from, [newJob('a', { spec: { unique } })]);
      expect(await store.move(from, ['a'], to)).toEqual(['moved']);
      expect(await store.add(to, [newJob('b', { spec: { unique } })])).toEqual([{ outcome: 'duplicate', id: 'a' }]);
      expect(await store.add(from, [newJob('c', { spec: { unique } })])).toEqual([{ outcome: 'created' }]);
      expect(await store.add(from, [newJob('a')])).toEqual([{ outcome: 'created' }]);
    });

    it('takes jobs of groups to the same group there, and lets an ordered group go on', async () => {
      const { from, to } = await pair();
      await store.configure(from, { limits: { group: { ordered: true } } });
      await store.add(from, [newJob('a0', { spec: { group: 'A' } }), newJob('a1', { spec: { group: 'A' } })]);
      const [entry] = await claim(from, 1);
      await store.settle(from, [settlementOf(entry!, fail(entry!.job!, 'x', { random, now: 0, delay: 50 }))]);
      expect(names(await claim(from, 9))).toEqual([]);
      const heard: Signal[] = [];
      const stop = await bench.listening(to, (signal) => heard.push(signal));
      await claim(to, 1);
      expect(await store.move(from, ['a0'], to)).toEqual(['moved']);
      stop();
      expect(names(await claim(from, 9))).toEqual(['a1']);
      bench.now += 50;
      const [moved] = await claim(to, 9);
      expect(moved!.job).toMatchObject({ id: 'a0', attempt: 2, spec: { group: 'A' } });
    });

    it('wakes the workers of the other queue', async () => {
      const { from, to } = await pair();
      await store.add(from, [newJob('a')]);
      await claim(to, 1);
      const heard: Signal[] = [];
      const stop = await bench.listening(to, (signal) => heard.push(signal));
      const before = heard.length;
      await store.move(from, ['a'], to);
      await until('a signal of work', () => heard.slice(before).some(({ type }) => type === 'work'));
      stop();
    });

    it('is recorded in the events of both queues', async () => {
      const { from, to } = await pair();
      for (const queue of [from, to]) await store.events.record(queue, 60_000);
      await store.add(from, [newJob('a')]);
      await store.move(from, ['a'], to);
      const told = async (queue: string) =>
        (await store.events.read(queue, '0', 9)).events.filter(({ id }) => id === 'a').map((e) => [e.type, e.info]);
      expect(await told(from)).toEqual([
        ['added', ''],
        ['moved', to],
      ]);
      expect(await told(to)).toEqual([['added', '']]);
    });
  });
}
