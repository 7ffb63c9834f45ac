import { beforeAll, describe, expect, it } from 'vitest';
import { FORGETFUL_SPEC } from '../../../dist/job/spec.js';
import { die, fail, finish, release, snooze } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { mustGet, names, newJob, settlementOf } from '../../support/jobs.js';
import { type Bench, random, SWEEP } from './setup.js';

/** How leases end. */
export function testSettling(bench: Bench): void {
  const { newQueue, session, joined, claim, total } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('settling', () => {
    it('keeps a done job with its result for the requested time', async () => {
      const queue = newQueue();
      await joined(queue);
      const spec = { keep: { done: { ms: 1_000, count: 10 }, dead: { ms: 1_000, count: 10 } } };
      await store.add(queue, [newJob('a', { spec }), newJob('b', { spec }), newJob('c', { spec })]);
      const [a, b, c] = await claim(queue, 3);
      const bytes = Uint8Array.from([1, 0, 2]);
      await store.settle(queue, [
        settlementOf(a!, finish(a!.job!, '{"x":1}')),
        settlementOf(b!, finish(b!.job!, bytes)),
        settlementOf(c!, finish(c!.job!)),
      ]);
      expect(await mustGet(store, queue, 'a')).toMatchObject({
        state: 'done',
        result: '{"x":1}',
        finishedAt: bench.now,
        attempt: 1,
      });
      expect(Buffer.from((await mustGet(store, queue, 'b')).result as Uint8Array)).toEqual(Buffer.from(bytes));
      expect((await mustGet(store, queue, 'c')).result).toBeUndefined();
      bench.now += 999;
      await store.sweep(queue, SWEEP);
      expect((await store.count(queue)).done).toBe(3);
      bench.now += 1;
      await store.sweep(queue, SWEEP);
      expect(await total(queue)).toBe(0);
      expect(await store.get(queue, ['a'])).toEqual([undefined]);
    });

    it('accepts only a complete token', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a')]);
      const [entry] = await claim(queue, 1);
      const { token } = entry!.lease;
      const wrong = [token.slice(0, -1), token.slice(0, 3), '', `${token}x`, `${token} `, `${token} 0`, ` ${token}`];
      for (const one of wrong) {
        const lease = { ...entry!.lease, token: one };
        const done = { ...settlementOf(entry!, finish(entry!.job!)), lease };
        const failed = { ...settlementOf(entry!, die(entry!.job!, 'x')), lease };
        // A server may reject some of them as malformed tokens.
        const without = <T>(call: Promise<T>, nothing: T) =>
          call.catch((error) => (error.code === 'BAD_OPTION' ? nothing : Promise.reject(error)));
        const [was, token] = [[false], JSON.stringify(one)];
        expect(await without(store.settle(queue, [done]), was), `done with ${token}`).toEqual([false]);
        expect(await without(store.settle(queue, [failed]), was), `dead with ${token}`).toEqual([false]);
        expect(
          await without(store.recordProgress(queue, lease, { progress: '1' }), false),
          `progress with ${token}`,
        ).toBe(false);
      }
      const other = newQueue();
      await joined(other);
      expect(await store.settle(other, [settlementOf(entry!, finish(entry!.job!))]), 'in another queue').toEqual([
        false,
      ]);
      expect(await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))])).toEqual([true]);
    });

    it('keeps at most the requested number of ended jobs, the newest ones', async () => {
      const queue = newQueue();
      await joined(queue);
      const spec = { keep: { done: { ms: 60_000, count: 2 }, dead: { ms: 60_000, count: 1 } } };
      for (const id of ['a', 'b', 'c']) {
        await store.add(queue, [newJob(id, { spec })]);
        const [entry] = await claim(queue, 1);
        await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))]);
        bench.now += 5_000;
      }
      expect((await store.list(queue, { state: 'done', limit: 10 })).jobs.map((job) => job.id)).toEqual(['c', 'b']);
      expect(await store.get(queue, ['a'])).toEqual([undefined]);
    });

    it('deletes a done job immediately when nothing is to be kept', async () => {
      const queue = newQueue();
      await joined(queue);
      const spec = { keep: { done: { ms: 0, count: 0 }, dead: { ms: 0, count: 0 } } };
      await store.add(queue, [newJob('a', { spec })]);
      const [entry] = await claim(queue, 1);
      await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))]);
      expect(await total(queue)).toBe(0);
      expect((await store.add(queue, [newJob('a')]))[0]!.outcome).toBe('created');
    });

    it('deletes a whole batch of jobs that are not kept, but only those with a valid token', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(
        queue,
        ['a', 'b', 'c', 'd'].map((id) => newJob(id, { spec: FORGETFUL_SPEC })),
      );
      const [a, b, c, d] = await claim(queue, 4);
      await store.recordProgress(queue, b!.lease, { progress: '1' });
      const done = (entry: typeof a) => settlementOf(entry!, finish(entry!.job!));
      expect(a!.job!.spec).toBe(FORGETFUL_SPEC);
      expect(await store.settle(queue, [done(a), done(a), done(c)])).toEqual([true, false, true]);
      expect(await store.count(queue)).toMatchObject({ active: 2, done: 0 });
      expect((await mustGet(store, queue, 'b')).state).toBe('active');
      expect(await store.settle(queue, [done(b), done(d)])).toEqual([true, true]);
      expect(await total(queue)).toBe(0);
      expect(await store.get(queue, ['a', 'b', 'c', 'd'])).toEqual(Array(4).fill(undefined));
    });

    it('deletes no other record when a job that is not kept ends', async () => {
      const queue = newQueue();
      await joined(queue);
      const nothing = { done: { ms: 0, count: 0 }, dead: { ms: 0, count: 0 } };
      await store.add(queue, [newJob('kept'), newJob('died'), newJob('gone', { spec: { keep: nothing } })]);
      await store.add(queue, [newJob('gone too', { spec: { keep: nothing } })]);
      const [kept, died, gone, goneToo] = await claim(queue, 4);
      await store.settle(queue, [
        settlementOf(kept!, finish(kept!.job!, '1')),
        settlementOf(died!, die(died!.job!, 'x')),
        settlementOf(gone!, finish(gone!.job!, '2')),
        settlementOf(goneToo!, die(goneToo!.job!, 'x')),
      ]);
      expect(await store.count(queue)).toMatchObject({ done: 1, dead: 1 });
      expect((await mustGet(store, queue, 'kept')).result).toBe('1');
      expect((await mustGet(store, queue, 'died')).state).toBe('dead');
    });

    it('delays a failed job, then appends it to the back, then declares it dead', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a', { spec: { attempts: 2 } }), newJob('b')]);
      const [a] = await claim(queue, 1);
      await store.settle(queue, [settlementOf(a!, fail(a!.job!, 'first', { random, now: 0, delay: 50 }))]);
      expect(await mustGet(store, queue, 'a')).toMatchObject({
        state: 'scheduled',
        runAt: bench.now + 50,
        attempt: 1,
        error: 'first',
      });
      bench.now += 49;
      expect((await store.claim(session(queue), 0 + 1)).nextAt).toBe(bench.now + 1);
      await store.add(queue, [newJob('c')]);
      bench.now += 1;
      const rest = await claim(queue, 5);
      expect(names(rest)).toEqual(['c', 'a']);
      const again = rest.find((entry) => entry.job?.id === 'a')!;
      expect(again.job!.attempt).toBe(2);
      await store.settle(queue, [settlementOf(again, fail(again.job!, 'second', { random, now: 0 }))]);
      expect(await mustGet(store, queue, 'a')).toMatchObject({ state: 'dead', attempt: 2, error: 'second' });
      expect((await store.count(queue)).dead).toBe(1);
    });

    it('returns released jobs to the front in their original order, whatever the order of the reports', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(
        queue,
        ['a', 'b', 'c', 'd'].map((id) => newJob(id)),
      );
      const entries = await claim(queue, 3);
      const shuffled = [entries[1]!, entries[2]!, entries[0]!];
      await store.settle(
        queue,
        shuffled.map((entry) => settlementOf(entry, release(entry.job!))),
      );
      expect(await mustGet(store, queue, 'a')).toMatchObject({ state: 'ready', attempt: 0 });
      expect(names(await claim(queue, 4))).toEqual(['a', 'b', 'c', 'd']);
    });

    it('returns a released job to the front of its own priority', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('p1', { priority: 3 }), newJob('p2', { priority: 3 }), newJob('n')]);
      const [p1] = await claim(queue, 1);
      await store.settle(queue, [settlementOf(p1!, release(p1!.job!))]);
      expect(names(await claim(queue, 3))).toEqual(['p1', 'p2', 'n']);
    });

    it('does not charge an attempt to a snoozed job', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a')]);
      const [entry] = await claim(queue, 1);
      await store.settle(queue, [settlementOf(entry!, snooze(entry!.job!, 1_000))]);
      expect(await mustGet(store, queue, 'a')).toMatchObject({
        state: 'scheduled',
        attempt: 0,
        runAt: bench.now + 1_000,
      });
    });

    it('refuses a token that is stale, already used, or of another job', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('b')]);
      const [a, b] = await claim(queue, 2);
      const done = (entry: typeof a) => settlementOf(entry!, finish(entry!.job!));
      const forged = { ...done(a), lease: { ...a!.lease, token: b!.lease.token } };
      expect(await store.settle(queue, [forged])).toEqual([false]);
      expect(await store.settle(queue, [settlementOf(a!, release(a!.job!))])).toEqual([true]);
      const [again] = await claim(queue, 1);
      expect(await store.settle(queue, [done(a), settlementOf(a!, release(a!.job!))])).toEqual([false, false]);
      expect(await store.settle(queue, [done(a)])).toEqual([false]);
      expect((await mustGet(store, queue, 'a')).state).toBe('active');
      expect(await store.settle(queue, [done(again), done(again)])).toEqual([true, false]);
      expect(await store.settle(queue, [done(b), done(a)])).toEqual([true, false]);
      expect((await store.count(queue)).done).toBe(2);
    });

    it('records progress and log lines from the holder only', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a')]);
      const [entry] = await claim(queue, 1);
      expect(await store.recordProgress(queue, entry!.lease, { progress: '50', log: 'half\n' })).toBe(true);
      expect(await store.recordProgress(queue, entry!.lease, { log: 'more\n' })).toBe(true);
      expect(await mustGet(store, queue, 'a')).toMatchObject({ progress: '50', log: 'half\nmore\n' });
      await store.settle(queue, [settlementOf(entry!, release(entry!.job!))]);
      expect(await store.recordProgress(queue, entry!.lease, { progress: '60' })).toBe(false);
      expect((await mustGet(store, queue, 'a')).progress).toBe('50');
    });
  });
}
