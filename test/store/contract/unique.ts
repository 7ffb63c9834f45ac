import { beforeAll, describe, expect, it } from 'vitest';
import type { NewJob, Unique, UniqueMode } from '../../../dist/job/job.js';
import { die, fail, finish } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { mustGet, newJob, settlementOf } from '../../support/jobs.js';
import { type Bench, random } from './setup.js';

/** Unique keys. */
export function testUnique(bench: Bench): void {
  const { newQueue, joined, claim, total, finishAll } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('unique keys', () => {
    const unique = (key: string, scope: 'waiting' | 'alive' | 'window', ttl = 0) => ({
      spec: { unique: { key, scope, ttl } },
    });

    it('holds a key of scope alive until the job ends', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a', unique('k', 'alive'))]);
      expect(await store.add(queue, [newJob('b', unique('k', 'alive'))])).toEqual([{ outcome: 'duplicate', id: 'a' }]);
      const [entry] = await claim(queue, 1);
      expect(await store.add(queue, [newJob('b', unique('k', 'alive'))])).toEqual([{ outcome: 'duplicate', id: 'a' }]);
      await store.settle(queue, [settlementOf(entry!, fail(entry!.job!, 'x', { random, now: 0, delay: 5 }))]);
      expect((await store.add(queue, [newJob('b', unique('k', 'alive'))]))[0]!.outcome).toBe('duplicate');
      bench.now += 5;
      const [again] = await claim(queue, 1);
      await store.settle(queue, [settlementOf(again!, die(again!.job!, 'x'))]);
      expect((await store.add(queue, [newJob('b', unique('k', 'alive'))]))[0]!.outcome).toBe('created');
    });

    it('frees a key of scope waiting when the job is claimed', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a', { ...unique('ключ', 'waiting') })]);
      expect((await store.add(queue, [newJob('b', unique('ключ', 'waiting'))]))[0]!.outcome).toBe('duplicate');
      await claim(queue, 1);
      expect((await store.add(queue, [newJob('b', unique('ключ', 'waiting'))]))[0]!.outcome).toBe('created');
    });

    it('holds a key of scope window for its whole time, whatever happens to the job', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a', unique('k', 'window', 1_000))]);
      const [entry] = await claim(queue, 1);
      await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))]);
      expect((await store.add(queue, [newJob('b', unique('k', 'window', 1_000))]))[0]!.outcome).toBe('duplicate');
      bench.now += 1_000;
      expect((await store.add(queue, [newJob('b', unique('k', 'window', 1_000))]))[0]!.outcome).toBe('created');
    });

    it('frees the key of a cancelled job', async () => {
      const queue = newQueue();
      await store.add(queue, [newJob('a', unique('k', 'alive'))]);
      await store.cancel(queue, ['a']);
      expect((await store.add(queue, [newJob('b', unique('k', 'alive'))]))[0]!.outcome).toBe('created');
    });
  });

  describe('unique keys that change a waiting job', () => {
    const job = (id: string, mode: UniqueMode, more: Partial<Unique> = {}, options: Partial<NewJob> = {}) =>
      newJob(id, { ...options, spec: { unique: { key: 'k', scope: 'alive', ttl: 0, mode, ...more } } });

    it('replace updates the payload of the waiting job and restarts its delay', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [job('a', 'replace', {}, { delay: 100 })]);
      bench.now += 60;
      const bytes = Buffer.from([0, 255, 59]);
      expect(await store.add(queue, [job('b', 'replace', {}, { delay: 100, payload: bytes })])).toEqual([
        { outcome: 'replaced', id: 'a' },
      ]);
      bench.now += 60;
      expect(await claim(queue, 9)).toEqual([]);
      bench.now += 40;
      const [entry] = await claim(queue, 9);
      expect(entry!.job!.id).toBe('a');
      expect(Buffer.from(entry!.job!.payload)).toEqual(bytes);
      expect(await store.add(queue, [job('c', 'replace', {}, { payload: '"late"' })])).toEqual([
        { outcome: 'duplicate', id: 'a' },
      ]);
      expect(Buffer.from((await mustGet(store, queue, 'a')).payload)).toEqual(bytes);
      expect(await total(queue)).toBe(1);
    });

    it('replace keeps everything else of the waiting job: options, position, group', async () => {
      const queue = newQueue();
      await joined(queue);
      const spec = {
        reservation: 5_000,
        group: 'naïve;3',
        headers: { h: '1' },
        unique: { key: 'k;9', scope: 'waiting', ttl: 0, mode: 'replace' },
      } as const;
      await store.add(queue, [newJob('a', { spec, payload: '"old"' }), newJob('z', { spec: { group: 'naïve;3' } })]);
      const counts = await store.count(queue);
      await store.add(queue, [
        newJob('b', { spec: { ...spec, headers: { h: '2' }, reservation: 0 }, payload: '"new and longer"' }),
      ]);
      expect(await store.count(queue)).toEqual(counts);
      const [entry] = await claim(queue, 1);
      expect(entry!.job).toMatchObject({ id: 'a', payload: '"new and longer"', spec });
    });

    it('extend restarts the delay and the window and keeps the payload', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [job('a', 'extend', { scope: 'window', ttl: 100 }, { delay: 50 })]);
      bench.now += 40;
      expect(
        await store.add(queue, [job('b', 'extend', { scope: 'window', ttl: 100 }, { delay: 50, payload: '"b"' })]),
      ).toEqual([{ outcome: 'extended', id: 'a' }]);
      bench.now += 45;
      expect(await claim(queue, 9)).toEqual([]);
      bench.now += 5;
      expect((await claim(queue, 9)).map((entry) => entry.job!.payload)).toEqual(['"a"']);
      bench.now += 49; // 139 ms after the first, 99 ms after the second
      expect(await store.add(queue, [job('c', 'keep', { scope: 'window', ttl: 100 })])).toEqual([
        { outcome: 'duplicate', id: 'a' },
      ]);
      bench.now += 1;
      expect(await store.add(queue, [job('d', 'keep', { scope: 'window', ttl: 100 })])).toEqual([
        { outcome: 'created' },
      ]);
    });
  });

  it('a debounce frees the key of an earlier throttle, and does not delay a job that is already due', async () => {
    const queue = newQueue();
    await joined(queue);
    const unique = { key: 'k', scope: 'window', ttl: 200 } as const;
    await store.add(queue, [newJob('a', { delay: 30, spec: { unique } })]);
    bench.now += 40;
    const second = newJob('b', {
      delay: 60_000,
      spec: { unique: { key: 'k', scope: 'waiting', ttl: 0, mode: 'replace' } },
    });
    expect(await store.add(queue, [second])).toEqual([{ outcome: 'replaced', id: 'a' }]);
    await finishAll(queue, 1);
    expect((await mustGet(store, queue, 'a')).state).toBe('done');
    bench.now += 200;
    expect(await store.add(queue, [newJob('c', { spec: { unique } })])).toEqual([{ outcome: 'created' }]);
  });
}
