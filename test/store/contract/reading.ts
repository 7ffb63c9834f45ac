import { beforeAll, describe, expect, it } from 'vitest';
import { STATES } from '../../../dist/job/job.js';
import { die, finish } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { newJob, settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import { type Bench, SWEEP } from './setup.js';

/** What can be read from outside. */
export function testLooking(bench: Bench): void {
  const { newQueue, joined, claim, listening, total, finishAll } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('reading', () => {
    it('pages through every state', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [
        ...Array.from({ length: 5 }, (_x, i) => newJob(`n${i}`)),
        newJob('hi', { priority: 1 }),
        newJob('lo', { priority: -1 }),
        ...Array.from({ length: 3 }, (_x, i) => newJob(`s${i}`, { delay: 100 + i })),
      ]);
      const walk = async (state: (typeof STATES)[number], limit: number) => {
        const ids: string[] = [];
        let cursor: string | undefined;
        do {
          const page = await store.list(queue, { state, limit, cursor });
          ids.push(...page.jobs.map((job) => job.id));
          cursor = page.cursor;
        } while (cursor !== undefined);
        return ids;
      };
      expect(await walk('ready', 2)).toEqual(['hi', 'n0', 'n1', 'n2', 'n3', 'n4', 'lo']);
      expect(await walk('scheduled', 2)).toEqual(['s0', 's1', 's2']);
      const entries = await claim(queue, 4);
      // Redis walks a hash here, and shows a field twice when the hash grows or shrinks between two pages.
      expect([...new Set(await walk('active', 2))].sort()).toEqual(['hi', 'n0', 'n1', 'n2']);
      await store.settle(
        queue,
        entries.map((entry) => settlementOf(entry, die(entry.job!, 'x'))),
      );
      expect((await walk('dead', 3)).sort()).toEqual(['hi', 'n0', 'n1', 'n2']);
      expect(await walk('blocked', 3)).toEqual([]);
    });

    it('returns zero counts for a queue that was never used', async () => {
      expect(await total('never-used')).toBe(0);
      expect(await store.get('never-used', ['a'])).toEqual([undefined]);
      expect(await store.list('never-used', { state: 'ready', limit: 5 })).toEqual({ jobs: [], cursor: undefined });
    });

    it('signals new work and awaited ends', async () => {
      const queue = newQueue();
      await joined(queue);
      const heard: string[] = [];
      const stop = await listening(queue, (signal) =>
        heard.push(signal.type === 'finished' ? `finished ${signal.id}` : signal.type),
      );
      await claim(queue, 1);
      heard.length = 0;
      await store.add(queue, [newJob('a')]);
      const [entry] = await claim(queue, 1);
      await store.watchForEnd(queue, ['a']);
      await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))]);
      await until('the end is signalled', () => heard.includes('finished a') && heard.includes('work'));
      stop();
      expect(heard).toContain('work');
      expect(heard).toContain('finished a');
    });
  });

  describe('paging', () => {
    it('skips no job that remains, even when listed jobs are removed between pages', async () => {
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
        bench.now += 10;
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

    it('continues at the right place when the last listed job is gone', async () => {
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

    it('terminates when an id is in the queue twice, once cancelled', async () => {
      const queue = newQueue();
      await store.add(queue, [newJob('x')]);
      await store.cancel(queue, ['x']);
      await store.remove(queue, ['x']);
      await store.add(queue, [newJob('y'), newJob('x'), newJob('z')]);
      const seen: string[] = [];
      let cursor: string | undefined;
      for (let i = 0; i < 20; i++) {
        const page = await store.list(queue, { state: 'ready', limit: 1, cursor });
        seen.push(...page.jobs.map((job) => job.id));
        cursor = page.cursor;
        if (cursor === undefined) break;
      }
      expect(cursor).toBeUndefined();
      expect([...new Set(seen)].sort()).toEqual(['x', 'y', 'z']);
    });

    it('repeats nothing when many jobs share a time or a priority and the last listed one is gone', async () => {
      const queue = newQueue();
      await joined(queue);
      const ids = Array.from({ length: 9 }, (_x, i) => `s${i}`);
      await store.add(
        queue,
        ids.map((id) => newJob(id, { delay: 500 })),
      );
      await store.add(
        queue,
        ids.map((id) => newJob(`p${id}`, { priority: 5 })),
      );
      for (const [state, prefix] of [
        ['scheduled', ''],
        ['ready', 'p'],
      ] as const) {
        const first = await store.list(queue, { state, limit: 4 });
        await store.cancel(queue, [first.jobs[3]!.id]);
        const rest = await store.list(queue, { state, limit: 9, cursor: first.cursor });
        expect(rest.jobs.map((job) => job.id)).toEqual(ids.slice(4).map((id) => `${prefix}${id}`));
      }
      const down = Array.from({ length: 7 }, (_x, i) =>
        newJob(`d${i}`, { spec: { needs: [{ queue, id: 's0', on: 'success' }] } }),
      );
      await store.add(queue, down);
      const page = await store.list(queue, { state: 'blocked', limit: 3 });
      expect(page.jobs).toHaveLength(3);
      const others = await store.list(queue, { state: 'blocked', limit: 9, cursor: page.cursor });
      expect(new Set([...page.jobs, ...others.jobs].map((job) => job.id)).size).toBe(7);
    });

    it('of ended jobs continues with older ones, whatever has ended since', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(
        queue,
        Array.from({ length: 6 }, (_x, i) => newJob(`old${i}`)),
      );
      for (let i = 0; i < 6; i++) {
        await finishAll(queue, 1);
        bench.now += 10;
      }
      const first = await store.list(queue, { state: 'done', limit: 3 });
      expect(first.jobs.map((job) => job.id)).toEqual(['old5', 'old4', 'old3']);
      await store.remove(queue, ['old3']);
      await store.add(
        queue,
        Array.from({ length: 4 }, (_x, i) => newJob(`new${i}`)),
      );
      await finishAll(queue, 4);
      const second = await store.list(queue, { state: 'done', limit: 9, cursor: first.cursor });
      expect(second.jobs.map((job) => job.id)).toEqual(['old2', 'old1', 'old0']);
    });

    it('tolerates forged cursors', async () => {
      const queue = newQueue();
      await store.add(queue, [newJob('a')]);
      for (const state of STATES) {
        for (const cursor of ['x', 'AAAA', 'W10', '0']) {
          const page = await store.list(queue, { state, limit: 5, cursor });
          expect(page.jobs.length).toBeLessThanOrEqual(1);
        }
      }
    });

    it('says since when a job is ready, if it was not from the beginning', async () => {
      const queue = newQueue();
      await joined(queue);
      const needs = { spec: { needs: [{ queue, id: 'now', on: 'success' as const }] } };
      await store.add(queue, [newJob('now'), newJob('later', { delay: 1_000 }), newJob('blocked', needs)]);
      const [first] = await claim(queue, 1);
      expect(first!.job!.runAt).toBeUndefined();
      bench.now += 500;
      await store.settle(queue, [settlementOf(first!, finish(first!.job!))]);
      const unblockedAt = bench.now;
      bench.now += 1_500;
      await store.sweep(queue, SWEEP);
      const ready = (await store.list(queue, { state: 'ready', limit: 9 })).jobs;
      expect(ready.map(({ id, runAt }) => [id, runAt])).toEqual([
        ['blocked', unblockedAt],
        ['later', bench.now - 1_000],
      ]);
      const claimed = await claim(queue, 9);
      expect(claimed.map(({ job }) => job!.runAt)).toEqual([unblockedAt, bench.now - 1_000]);
      await store.rerun(queue, ['now'], ['done']);
      expect((await claim(queue, 1))[0]!.job!.runAt).toBe(bench.now);
    });
  });
}
