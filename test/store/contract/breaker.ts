import { beforeAll, describe, expect, it } from 'vitest';
import type { Entry } from '../../../dist/job/job.js';
import { die, fail, finish, lose, type Outcome, release } from '../../../dist/job/transitions.js';
import type { Signal, Store } from '../../../dist/store/store.js';
import { names, newJob, settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import { type Bench, random, SWEEP } from './setup.js';

const BREAKER = { failures: 3, pause: 1_000 };

/** The breaker of a queue, which stops it after failures in a row. */
export function testBreaker(bench: Bench): void {
  const { newQueue, session, joined, claim } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('the breaker', () => {
    const jobs = (count: number) => Array.from({ length: count }, (_x, i) => newJob(`j${i}`));
    const broken = async (queue: string) => (await store.settings(queue)).breakerState;
    const settle = (queue: string, entries: readonly Entry[], how: 'done' | 'retry' | 'dead' | 'release') =>
      store.settle(
        queue,
        entries.map((entry) => settlementOf(entry, OUTCOMES[how](entry))),
      );
    const OUTCOMES: Record<'done' | 'retry' | 'dead' | 'release', (entry: Entry) => Outcome> = {
      done: ({ job }) => finish(job!),
      retry: ({ job }) => fail(job!, 'x', { random, now: 0, delay: 60_000 }),
      dead: ({ job }) => die(job!, 'x'),
      release: ({ job }) => release(job!),
    };
    /** A queue with a breaker that has just opened; jobs are left. */
    const opened = async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { breaker: BREAKER });
      await store.add(queue, jobs(10));
      await settle(queue, await claim(queue, 3), 'dead');
      return queue;
    };

    it('is a setting that is stored and can be removed', async () => {
      const queue = newQueue();
      expect(await store.settings(queue)).toEqual({ paused: false, limits: {} });
      await store.configure(queue, { breaker: BREAKER });
      expect(await store.settings(queue)).toEqual({
        paused: false,
        limits: {},
        breaker: BREAKER,
        breakerState: { failed: 0 },
      });
      await store.configure(queue, { breaker: null });
      expect(await store.settings(queue)).toEqual({ paused: false, limits: {} });
    });

    it('opens after failures in a row, retries and dead jobs alike, and says when it ends', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { breaker: BREAKER });
      await store.add(queue, jobs(10));
      await settle(queue, await claim(queue, 2), 'retry');
      expect(await broken(queue)).toEqual({ failed: 2 });
      await settle(queue, await claim(queue, 1), 'done');
      expect(await broken(queue)).toEqual({ failed: 0 });
      const running = await claim(queue, 4);
      await settle(queue, running.slice(0, 1), 'retry');
      await settle(queue, running.slice(1, 3), 'dead');
      expect(await broken(queue)).toEqual({ failed: 3, until: bench.now + 1_000 });
      const stopped = { status: 'paused', entries: [], more: false, nextAt: bench.now + 1_000 };
      expect(await store.claim(session(queue), 5)).toEqual(stopped);
      // what still runs decides nothing any more
      await settle(queue, running.slice(3), 'done');
      expect(await store.claim(session(queue), 5)).toEqual(stopped);
    });

    it('lets one job through after the pause, and closes when that one succeeds', async () => {
      const queue = await opened();
      bench.now += 1_000;
      const trial = await store.claim(session(queue), 5);
      expect(trial).toMatchObject({ status: 'ok', more: false, nextAt: bench.now + 1_000 });
      expect(trial.entries).toHaveLength(1);
      expect(await store.claim(session(queue), 5)).toMatchObject({ status: 'paused', entries: [] });
      const heard: Signal[] = [];
      const stop = await bench.listening(queue, (signal) => heard.push(signal));
      await settle(queue, trial.entries, 'done');
      await until('a signal of work', () => heard.some(({ type }) => type === 'work'));
      stop();
      expect(await broken(queue)).toEqual({ failed: 0 });
      expect(await claim(queue, 9)).toHaveLength(6);
    });

    it('opens again when the job that it let through fails', async () => {
      const queue = await opened();
      bench.now += 1_000;
      const [trial] = await claim(queue, 5);
      bench.now += 10;
      await settle(queue, [trial!], 'retry');
      expect(await broken(queue)).toEqual({ failed: 4, until: bench.now + 1_000 });
    });

    it.each(['release', 'cancel'] as const)('lets another one through after a %s of the first', async (how) => {
      const queue = await opened();
      bench.now += 1_000;
      const [trial] = await claim(queue, 5);
      if (how === 'release') await settle(queue, [trial!], 'release');
      else await store.cancel(queue, [trial!.job!.id]);
      expect(await claim(queue, 5)).toHaveLength(0);
      bench.now += 1_000;
      const next = await claim(queue, 5);
      expect(next).toHaveLength(1);
      await settle(queue, next, 'done');
      expect((await broken(queue))?.until).toBeUndefined();
    });

    it('does not count lost workers', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { breaker: { failures: 1, pause: 1_000 } });
      await store.add(queue, jobs(1));
      const entries = await claim(queue, 1);
      await store.settle(
        queue,
        entries.map((entry) => settlementOf(entry, lose(entry.job!, 3, 'w1'))),
      );
      expect(await broken(queue)).toEqual({ failed: 0 });
      expect(names(await claim(queue, 1))).toEqual(['j0']);
    });

    it('counts a success that is reported without a token, and raw tasks', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { breaker: { failures: 2, pause: 1_000 } });
      await store.add(queue, jobs(3));
      await settle(queue, await claim(queue, 1), 'dead');
      await claim(queue, 1);
      expect(await store.reportSuccess(queue, ['j1'])).toEqual([true]);
      expect(await broken(queue)).toEqual({ failed: 0 });
      await settle(queue, await claim(queue, 1), 'dead');
      await store.push(queue, [Buffer.from('t')]);
      const [task] = await claim(queue, 1);
      await store.settle(queue, [settlementOf(task!, { to: 'done', attempt: 1, crashes: 0 })]);
      expect(await broken(queue)).toEqual({ failed: 0 });
    });

    it('is closed by hand with the end of a pause, and by obliterate', async () => {
      const queue = await opened();
      await store.configure(queue, { paused: false });
      expect(await broken(queue)).toEqual({ failed: 0 });
      await settle(queue, await claim(queue, 3), 'dead');
      expect((await broken(queue))?.until).toBe(bench.now + 1_000);
      await store.obliterate(queue);
      await store.add(queue, jobs(1));
      expect(names(await claim(queue, 1))).toEqual(['j0']);
      expect((await store.settings(queue)).breaker).toEqual(BREAKER);
    });

    it('keeps what it has counted when it is set again, and forgets it when it is removed', async () => {
      const queue = await opened();
      await store.configure(queue, { breaker: { failures: 5, pause: 50 } });
      expect(await broken(queue)).toEqual({ failed: 3, until: bench.now + 1_000 });
      await store.configure(queue, { breaker: null });
      expect(await claim(queue, 9)).toHaveLength(7);
    });

    it('keeps its queue from being forgotten', async () => {
      const queue = newQueue();
      await store.configure(queue, { breaker: BREAKER });
      await store.sweep(queue, SWEEP);
      bench.now += 120_000;
      await store.sweep(queue, SWEEP);
      expect((await store.settings(queue)).breaker).toEqual(BREAKER);
      expect(await store.queues()).toContain(queue);
    });

    it('tells listeners when it opens and closes', async () => {
      const queue = newQueue();
      await store.events.record(queue, 60_000);
      await joined(queue);
      await store.configure(queue, { breaker: { failures: 1, pause: 1_000 } });
      await store.add(queue, jobs(2));
      await settle(queue, await claim(queue, 1), 'dead');
      bench.now += 1_000;
      await settle(queue, await claim(queue, 1), 'done');
      const { events } = await store.events.read(queue, '0', 100);
      const of = events.filter(({ type }) => type === 'breaker').map(({ id, info }) => [id, info]);
      expect(of).toEqual([
        ['', 'open'],
        ['', 'closed'],
      ]);
    });
  });
}
