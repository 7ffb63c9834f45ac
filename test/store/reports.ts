import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Engine } from '../../dist/engine/engine.js';
import { sweepQueue } from '../../dist/engine/sweeper.js';
import { report } from '../../dist/engine/tokenless-report.js';
import { STATES } from '../../dist/job/job.js';
import { die, fail, release } from '../../dist/job/transitions.js';
import { SERVER_SESSION, type Store } from '../../dist/store/store.js';
import { mustGet, newJob, settlementOf } from '../support/jobs.js';
import type { StoreUnderTest } from './contract.js';

const LEASE = 10_000;
const CARE = { lease: LEASE, sweep: 0, maxCrashes: 3 };
const RESERVED = { spec: { reservation: 5_000, backoff: { kind: 'fixed', delay: 60_000 } as const, attempts: 3 } };

/** The contract of every store for reports without a token, relays, and removal. */
export function testReports({ name, open }: StoreUnderTest): void {
  describe(`reports without a token: ${name}`, () => {
    let store: Store;
    let engine: Engine;
    let close: () => Promise<void>;
    let now = 1_800_000_000_000;
    let queues = 0;

    beforeAll(async () => {
      ({ store, close } = await open(() => now));
      engine = new Engine(store, { random: () => 0.5 });
    }, 60_000);
    afterAll(() => close());

    const newQueue = () => `r${++queues}-${name}`;
    const relay = (queue: string) => ({ queue, worker: `${SERVER_SESSION}one`, lease: LEASE });
    const delivered = async (options: Parameters<typeof newJob>[1] = RESERVED) => {
      const queue = newQueue();
      await store.join(queue, `${SERVER_SESSION}one`, { lease: LEASE, info: '{}' });
      await store.add(queue, [newJob('a', options)]);
      const [entry] = (await store.claim(relay(queue), 1)).entries;
      return { queue, entry: entry! };
    };
    const state = async (queue: string) => (await mustGet(store, queue, 'a')).state;
    /** Advances time in small steps, sweeping the queue as it goes. */
    const pass = async (queue: string, ms: number) => {
      for (let left = ms; left > 0; left -= 2_000) {
        now += Math.min(left, 2_000);
        await store.heartbeat([relay(queue)]);
        await sweepQueue(engine, queue, CARE);
      }
    };
    const expectConsistent = async (queue: string) => {
      const counts = await store.count(queue);
      expect(STATES.reduce((sum, one) => sum + counts[one], 0)).toBe(1);
    };

    it('success settles an active job, and only once', async () => {
      const { queue } = await delivered();
      expect(await report(engine, queue, [{ id: 'a', ok: true }])).toEqual([true]);
      expect(await state(queue)).toBe('done');
      expect(await report(engine, queue, [{ id: 'a', ok: true }])).toEqual([false]);
      expect(await report(engine, queue, [{ id: 'a', ok: false }])).toEqual([false]);
      await expectConsistent(queue);
    });

    it('failure schedules a retry, and later reports about that delivery are ignored', async () => {
      const { queue } = await delivered();
      expect(await report(engine, queue, [{ id: 'a', ok: false }])).toEqual([true]);
      expect(await mustGet(store, queue, 'a')).toMatchObject({ state: 'scheduled', attempt: 1, answered: true });
      expect(await report(engine, queue, [{ id: 'a', ok: true }])).toEqual([false]);
      await pass(queue, 61_000);
      expect(await mustGet(store, queue, 'a')).toMatchObject({ state: 'ready', answered: true });
      expect(await report(engine, queue, [{ id: 'a', ok: true }])).toEqual([false]);
      await expectConsistent(queue);
    });

    it('the next delivery can be reported again', async () => {
      const { queue } = await delivered();
      await report(engine, queue, [{ id: 'a', ok: false }]);
      await pass(queue, 61_000);
      expect((await store.claim(relay(queue), 1)).entries).toHaveLength(1);
      expect(await report(engine, queue, [{ id: 'a', ok: true }])).toEqual([true]);
      expect(await state(queue)).toBe('done');
    });

    it.each([
      ['scheduled', 6_000],
      ['ready', 75_000],
    ])('a late success after the reservation ended counts while the job is %s', async (expected, wait) => {
      const { queue } = await delivered();
      await pass(queue, wait);
      expect(await mustGet(store, queue, 'a')).toMatchObject({ state: expected, attempt: 1 });
      expect((await mustGet(store, queue, 'a')).answered).toBeUndefined();
      expect(await report(engine, queue, [{ id: 'a', ok: false }])).toEqual([false]);
      expect(await report(engine, queue, [{ id: 'a', ok: true }])).toEqual([true]);
      expect(await state(queue)).toBe('done');
      expect((await store.claim(relay(queue), 1)).entries).toEqual([]);
      await expectConsistent(queue);
    });

    it('a job that was never delivered cannot be reported', async () => {
      const queue = newQueue();
      await store.add(queue, [newJob('a', RESERVED)]);
      expect(await report(engine, queue, [{ id: 'a', ok: true }])).toEqual([false]);
      expect(await report(engine, queue, [{ id: 'nobody', ok: true }])).toEqual([false]);
      expect(await state(queue)).toBe('ready');
    });

    it('a released delivery cannot be reported', async () => {
      const { queue, entry } = await delivered();
      await store.settle(queue, [settlementOf(entry, release(entry.job!))]);
      expect(await report(engine, queue, [{ id: 'a', ok: true }])).toEqual([false]);
      expect(await state(queue)).toBe('ready');
    });

    it('a job is dead after its last attempt, whether it was reported or timed out', async () => {
      const { queue } = await delivered({ spec: { ...RESERVED.spec, attempts: 2 } });
      await report(engine, queue, [{ id: 'a', ok: false }]);
      await pass(queue, 61_000);
      await store.claim(relay(queue), 1);
      await pass(queue, 6_000);
      expect(await mustGet(store, queue, 'a')).toMatchObject({ state: 'dead', attempt: 2 });
      expect(await report(engine, queue, [{ id: 'a', ok: true }])).toEqual([false]);
    });

    it('jobs a dead relay forwarded stay active until their reservation ends; the rest return uncharged', async () => {
      const queue = newQueue();
      await store.join(queue, `${SERVER_SESSION}one`, { lease: LEASE, info: '{}' });
      await store.add(queue, [newJob('a', { spec: { ...RESERVED.spec, reservation: 40_000 } }), newJob('b')]);
      await store.push(queue, [Buffer.from('raw')]);
      expect((await store.claim(relay(queue), 9)).entries).toHaveLength(3);
      for (let i = 0; i < 8; i++) {
        now += 2_000;
        await sweepQueue(engine, queue, CARE);
      }
      expect(await state(queue)).toBe('active');
      expect(await mustGet(store, queue, 'b')).toMatchObject({ state: 'ready', attempt: 0, crashes: 0 });
      expect((await store.count(queue)).ready).toBe(2);
      expect(await store.workers(queue)).toEqual([]);
      expect(await report(engine, queue, [{ id: 'a', ok: true }])).toEqual([true]);
    });

    it('removes the records of ended jobs only', async () => {
      const queue = newQueue();
      await store.join(queue, 'w', { lease: LEASE, info: '{}' });
      await store.add(queue, [newJob('dead'), newJob('done'), newJob('retry'), newJob('active'), newJob('waiting')]);
      const { entries } = await store.claim({ queue, worker: 'w', lease: LEASE }, 4);
      const [dead, done, retry] = entries;
      await store.settle(queue, [settlementOf(dead!, die(dead!.job!, 'x'))]);
      await store.settle(queue, [
        settlementOf(done!, { to: 'done', attempt: 1, crashes: 0 }),
        settlementOf(retry!, fail(retry!.job!, 'y', { random: () => 0, now: 0 })),
      ]);
      const ids = ['dead', 'done', 'retry', 'active', 'waiting', 'nobody'];
      expect(await store.remove(queue, ids)).toEqual([true, true, false, false, false, false]);
      const { dead: left, done: over, scheduled, active, ready } = await store.count(queue);
      expect({ left, over, scheduled, active, ready }).toEqual({ left: 0, over: 0, scheduled: 1, active: 1, ready: 1 });
      expect(await store.add(queue, [newJob('dead')])).toEqual([{ outcome: 'created' }]);
    });
  });
}
