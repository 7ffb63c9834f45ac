import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STATES } from '../../dist/job/job.js';
import { finish } from '../../dist/job/transitions.js';
import type { Beat, Store } from '../../dist/store/store.js';
import { newJob, settlementOf } from '../support/jobs.js';
import type { StoreUnderTest } from './conformance.js';

const LEASE = 10_000;

/** The second half of the contract: what every store does beyond adding, claiming and settling. */
export function testBreadth({ name, open }: StoreUnderTest): void {
  describe(`store contract, breadth: ${name}`, () => {
    let store: Store;
    let close: () => Promise<void>;
    let now = 1_800_000_000_000;
    let queues = 0;

    beforeAll(async () => {
      ({ store, close } = await open(() => now));
    }, 60_000);
    afterAll(() => close());

    const newQueue = () => `b${++queues}-${name}`;
    const session = (queue: string, worker = 'w1'): Beat => ({ queue, worker, lease: LEASE });
    const joined = (queue: string, worker = 'w1') => store.join(queue, worker, { lease: LEASE, info: '{}' });
    const claim = async (queue: string, n: number, worker = 'w1') =>
      (await store.claim(session(queue, worker), n)).entries;
    const total = async (queue: string) => {
      const counts = await store.count(queue);
      return STATES.reduce((sum, state) => sum + counts[state], 0);
    };
    const finishAll = async (queue: string, n: number) => {
      const entries = await claim(queue, n);
      await store.settle(
        queue,
        entries.map((entry) => settlementOf(entry, finish(entry.job!))),
      );
    };

    describe('removing', () => {
      it('drops the records of ended jobs and of no others', async () => {
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
    });

    describe('schedules', () => {
      it('keeps one that says the same, replaces one that does not, and knows its ticks', async () => {
        const queue = newQueue();
        const put = (definition: string, next: number, at = queue) =>
          store.putSchedule({ name: `tick ${queue}`, queue: at, definition, since: now, next });
        const first = await put('{"a":1}', now + 100);
        expect(first).toEqual({ name: `tick ${queue}`, queue, definition: '{"a":1}', since: now, next: now + 100 });
        const since = now;
        now += 50;
        expect(await put('{"a":1}', now + 999)).toEqual(first);
        expect(await put('{"a":2}', now + 70)).toEqual({ ...first, definition: '{"a":2}', since: now, next: now + 70 });
        expect(since).toBeLessThan(now);
        const moved = await put('{"a":2}', now + 70, `${queue}-other`);
        expect(moved.queue).toBe(`${queue}-other`);
        expect((await store.schedules()).filter(({ name }) => name === `tick ${queue}`)).toEqual([moved]);
        expect(await store.dropSchedule(`tick ${queue}`)).toBe(true);
        expect(await store.dropSchedule(`tick ${queue}`)).toBe(false);
        expect((await store.schedules()).filter(({ name }) => name === `tick ${queue}`)).toEqual([]);
      });

      it('fires a tick once, with its job, whoever asks', async () => {
        const queue = newQueue();
        const schedule = await store.putSchedule({
          name: `once ${queue}`,
          queue,
          definition: 'x',
          since: now,
          next: now,
        });
        const fire = (id: string) => store.fire(schedule, { jobs: [newJob(id)], next: now + 60, last: now });
        expect((await Promise.all(['a', 'b', 'c', 'd', 'e'].map(fire))).filter(Boolean)).toHaveLength(1);
        expect((await store.count(queue)).ready).toBe(1);
        const [after] = (await store.schedules()).filter(({ name }) => name === `once ${queue}`);
        expect(after).toMatchObject({ next: now + 60, last: now });
        expect(await store.fire({ ...after!, definition: 'y' }, { jobs: [newJob('f')], next: 0 })).toBe(false);
        expect(await store.fire(after!, { jobs: [] })).toBe(true);
        expect((await store.schedules()).find(({ name }) => name === `once ${queue}`)).not.toHaveProperty('next');
        expect(await store.fire(after!, { jobs: [newJob('g')] })).toBe(false);
        expect(await total(queue)).toBe(1);
        await store.dropSchedule(`once ${queue}`);
      });
    });

    describe('paging', () => {
      it('misses nothing that stays, though what was shown is taken away between pages', async () => {
        const queue = newQueue();
        await joined(queue);
        const ids = Array.from({ length: 12 }, (_x, i) => `j${String(i).padStart(2, '0')}`);
        const keep = { done: { ms: 5e6, count: 99 }, dead: { ms: 1, count: 1 } };
        await store.add(
          queue,
          ids.map((id, i) => newJob(id, { spec: i % 2 ? { keep } : {} })),
        );
        for (let i = 0; i < 6; i++) {
          await finishAll(queue, 2);
          now += 10;
        }
        const seen: string[] = [];
        let cursor: string | undefined;
        do {
          const page = await store.list(queue, { state: 'done', limit: 5, cursor });
          cursor = page.cursor;
          seen.push(...page.jobs.map((job) => job.id));
          await store.remove(
            queue,
            page.jobs.slice(0, -1).map((job) => job.id),
          );
        } while (cursor !== undefined);
        expect(seen.sort()).toEqual(ids);
      });

      it('goes on where it was when the last job shown has gone', async () => {
        const queue = newQueue();
        await store.add(
          queue,
          Array.from({ length: 9 }, (_x, i) => newJob(`s${i}`, { delay: 100 + i })),
        );
        const first = await store.list(queue, { state: 'scheduled', limit: 4 });
        await store.cancel(queue, ['s1', 's3']);
        const second = await store.list(queue, { state: 'scheduled', limit: 9, cursor: first.cursor });
        expect(second.jobs.map((job) => job.id)).toEqual(['s4', 's5', 's6', 's7', 's8']);
      });

      it('is not led astray by a cursor of somebody else’s making', async () => {
        const queue = newQueue();
        await store.add(queue, [newJob('a')]);
        for (const state of STATES) {
          for (const cursor of ['x', 'AAAA', 'W10', '0']) {
            const page = await store.list(queue, { state, limit: 5, cursor });
            expect(page.jobs.length).toBeLessThanOrEqual(1);
          }
        }
      });
    });
  });
}
