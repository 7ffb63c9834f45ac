import { beforeAll, describe, expect, it } from 'vitest';
import type { Entry, Job } from '../../../dist/job/job.js';
import { die, fail, finish, lose, type Outcome, release } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { mustGet, names, newJob, settlementOf } from '../../support/jobs.js';
import { type Bench, LEASE } from './setup.js';

/** Limits and groups. */
export function testPace(bench: Bench): void {
  const { newQueue, session, joined, claim } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('limits', () => {
    const entryNames = async (queue: string, n: number, worker = 'w1') => names(await claim(queue, n, worker));
    const jobs = (prefix: string, count: number, group?: string) =>
      Array.from({ length: count }, (_x, i) => newJob(`${prefix}${i}`, group === undefined ? {} : { spec: { group } }));
    const settle = (queue: string, entries: Entry[], how: (job: Job) => Outcome) =>
      store.settle(
        queue,
        entries.map((entry) => settlementOf(entry, how(entry.job!))),
      );

    it('are stored and can be removed', async () => {
      const queue = newQueue();
      expect((await store.settings(queue)).limits).toEqual({});
      const pace = { concurrency: 3, rate: { count: 5, per: 100 }, group: { rate: { count: 1, per: 10 } } };
      await store.configure(queue, { limits: pace });
      expect((await store.settings(queue)).limits).toEqual(pace);
      await store.configure(queue, { limits: {} });
      expect((await store.settings(queue)).limits).toEqual({});
    });

    it('cap how many entries run at once, jobs and raw tasks together, across all workers', async () => {
      const queue = newQueue();
      await joined(queue);
      await joined(queue, 'w2');
      await store.configure(queue, { limits: { concurrency: 3 } });
      await store.add(queue, jobs('j', 4));
      await store.push(queue, [Buffer.from('t')]);
      const first = await claim(queue, 2);
      expect(first).toHaveLength(2);
      expect(await claim(queue, 5, 'w2')).toHaveLength(1);
      expect(await store.claim(session(queue), 5)).toMatchObject({ entries: [], more: false });
      await store.settle(queue, [
        settlementOf(first[0]!, first[0]!.job ? finish(first[0]!.job) : { to: 'done', attempt: 1, crashes: 0 }),
      ]);
      expect(await claim(queue, 5)).toHaveLength(1);
      expect((await store.count(queue)).active).toBe(3);
    });

    it('cap how many entries start per interval, and report when more may start', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { limits: { rate: { count: 3, per: 1_000 } } });
      await store.add(queue, jobs('j', 5));
      expect(await entryNames(queue, 2)).toEqual(['j0', 'j1']);
      const opened = bench.now;
      bench.now += 400;
      const second = await store.claim(session(queue), 2);
      expect({ names: names(second.entries), more: second.more, nextAt: second.nextAt }).toEqual({
        names: ['j2'],
        more: false,
        nextAt: opened + 1_000,
      });
      expect(await entryNames(queue, 2)).toEqual([]);
      bench.now = opened + 1_000;
      expect(await entryNames(queue, 9)).toEqual(['j3', 'j4']);
    });

    it('give each group its turn, however many jobs one group has', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [...jobs('a', 5, 'A'), ...jobs('b', 2, 'B'), ...jobs('c', 1, 'C')]);
      expect(await entryNames(queue, 4)).toEqual(['a0', 'b0', 'c0', 'a1']);
      await store.add(queue, jobs('d', 2, 'D'));
      expect(await entryNames(queue, 9)).toEqual(['b1', 'a2', 'd0', 'a3', 'd1', 'a4']);
      expect((await store.count(queue)).ready).toBe(0);
    });

    it('alternate between groups and ungrouped jobs, and respect priorities within a group', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [
        ...jobs('n', 4),
        ...jobs('a', 3, 'A'),
        newJob('first', { priority: 5, spec: { group: 'A' } }),
      ]);
      const taken = await entryNames(queue, 4);
      expect(taken.filter((name) => name.startsWith('n'))).toEqual(['n0', 'n1']);
      expect(taken.filter((name) => !name.startsWith('n'))).toEqual(['first', 'a0']);
      expect((await entryNames(queue, 9)).sort()).toEqual(['a1', 'a2', 'n2', 'n3']);
    });

    it('cap how many jobs of a group run, and start the next one when one ends', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { limits: { group: { concurrency: 1 } } });
      await store.add(queue, [...jobs('a', 3, 'A'), ...jobs('b', 2, 'B'), ...jobs('n', 2)]);
      const first = await claim(queue, 9);
      expect(names(first).sort()).toEqual(['a0', 'b0', 'n0', 'n1']);
      expect(await store.claim(session(queue), 9)).toMatchObject({ entries: [], more: false });
      const of = (id: string) => first.filter((entry) => entry.job!.id === id);
      await settle(queue, of('b0'), (job) => fail(job, 'x', { random: () => 0, now: 0, delay: 50 }));
      expect(await entryNames(queue, 9)).toEqual(['b1']);
      await settle(queue, of('a0'), release);
      const again = await claim(queue, 9);
      expect(names(again)).toEqual(['a0']);
      expect(await store.cancel(queue, ['a0'])).toEqual([true]);
      expect(await entryNames(queue, 9)).toEqual(['a1']);
      bench.now += 50;
      expect(await entryNames(queue, 9)).toEqual([]);
      expect((await store.count(queue)).ready).toBe(2);
    });

    it('free the group slots that a dead worker held', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { limits: { concurrency: 1, group: { concurrency: 1 } } });
      await store.add(queue, jobs('a', 2, 'A'));
      expect(await entryNames(queue, 9)).toEqual(['a0']);
      await joined(queue, 'w2');
      for (let i = 0; i < 3; i++) {
        bench.now += LEASE / 2;
        await store.heartbeat([session(queue, 'w2')]);
        const { lost } = await store.sweep(queue, { lease: LEASE, every: 0 });
        await settle(queue, lost, (job) => lose(job, 3, 'w1'));
      }
      expect(await entryNames(queue, 9, 'w2')).toEqual(['a0']);
      expect(await entryNames(queue, 9, 'w2')).toEqual([]);
    });

    it('cap how many jobs of a group start per interval', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { limits: { group: { rate: { count: 2, per: 1_000 } } } });
      await store.add(queue, [...jobs('a', 4, 'A'), ...jobs('b', 1, 'B')]);
      const first = await store.claim(session(queue), 9);
      expect(names(first.entries)).toEqual(['a0', 'b0', 'a1']);
      expect({ more: first.more, nextAt: first.nextAt }).toEqual({ more: false, nextAt: bench.now + 1_000 });
      await settle(queue, first.entries, finish);
      expect(await entryNames(queue, 9)).toEqual([]);
      bench.now += 1_000;
      expect(await entryNames(queue, 9)).toEqual(['a2', 'a3']);
    });

    it('unblock groups at their limit when the limit is raised', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { limits: { group: { concurrency: 1 } } });
      await store.add(queue, [...jobs('a', 3, 'A'), ...jobs('b', 3, 'B')]);
      expect(await entryNames(queue, 9)).toEqual(['a0', 'b0']);
      await store.configure(queue, { limits: { group: { concurrency: 2 } } });
      expect((await entryNames(queue, 9)).sort()).toEqual(['a1', 'b1']);
      await store.configure(queue, { limits: {} });
      expect((await entryNames(queue, 9)).sort()).toEqual(['a2', 'b2']);
    });

    it('serve raw tasks, jobs and groups equally when claiming one at a time', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [...jobs('n', 20), ...jobs('a', 20, 'A')]);
      await store.push(
        queue,
        Array.from({ length: 20 }, (_x, i) => Buffer.from(`t${i}`)),
      );
      const served: string[] = [];
      for (let i = 0; i < 24; i++) served.push(...(await entryNames(queue, 1)));
      const of = (kind: string) => served.filter((name) => name.startsWith(kind)).length;
      expect({ groups: of('a'), jobs: of('n'), tasks: of('t') }).toEqual({ groups: 12, jobs: 6, tasks: 6 });
    });

    it('let rate-limited groups continue when their rate limit is removed', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { limits: { group: { rate: { count: 1, per: 3_600_000 } } } });
      await store.add(queue, jobs('a', 2, 'A'));
      expect(await entryNames(queue, 9)).toEqual(['a0']);
      await store.configure(queue, { limits: {} });
      expect(await entryNames(queue, 9)).toEqual(['a1']);
    });

    it('allow listing, cancelling, retrying and removing jobs of groups like any other', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [
        ...jobs('a', 3, 'A'),
        ...jobs('b', 2, 'B'),
        newJob('later', { delay: 100, spec: { group: 'B' } }),
      ]);
      expect(await mustGet(store, queue, 'a1')).toMatchObject({ state: 'ready', spec: { group: 'A' } });
      const shown = new Set<string>();
      let cursor: string | undefined;
      do {
        const page = await store.list(queue, { state: 'ready', limit: 2, cursor });
        for (const job of page.jobs) shown.add(job.id);
        cursor = page.cursor;
      } while (cursor !== undefined);
      expect([...shown].sort()).toEqual(['a0', 'a1', 'a2', 'b0', 'b1']);
      expect(await store.cancel(queue, ['a0', 'a1', 'a2'])).toEqual([true, true, true]);
      const [b0] = await claim(queue, 1);
      expect(b0!.job!.id).toBe('b0');
      await settle(queue, [b0!], (job) => die(job, 'x'));
      expect(await store.rerun(queue, ['b0'], ['dead'])).toEqual([true]);
      bench.now += 100;
      await store.add(
        queue,
        jobs('a', 1, 'A').map((job) => ({ ...job, id: 'a9' })),
      );
      expect((await entryNames(queue, 9)).sort()).toEqual(['a9', 'b0', 'b1', 'later']);
      await store.obliterate(queue);
      await store.add(queue, jobs('z', 1, 'A'));
      expect(await entryNames(queue, 9)).toEqual(['z0']);
    });
  });
}
