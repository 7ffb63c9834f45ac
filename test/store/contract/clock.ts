import { beforeAll, describe, expect, it } from 'vitest';
import { lose } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { names, newJob, settlementOf } from '../../support/jobs.js';
import { type Bench, LEASE } from './setup.js';

const HOUR = 3_600_000;
const SECOND = 1_000;

/** A clock that is changed. */
export function testClock(bench: Bench): void {
  const { newQueue, joined, session, claim } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  /** Advances one second: live workers send heartbeats, and the queue is swept. Returns the lost entries. */
  const second = async (queue: string, ...living: string[]) => {
    bench.now += SECOND;
    for (const worker of living) expect(await store.heartbeat([session(queue, worker)])).toEqual([true]);
    const { lost } = await store.sweep(queue, { lease: LEASE, every: SECOND });
    await store.settle(
      queue,
      lost.map((entry) => settlementOf(entry, lose(entry.job!, 3, 'x'))),
    );
    return names(lost);
  };
  /** Two workers hold one job each and one worker stops; returns what later sweeps report as lost. */
  const after = async (jump: number) => {
    const queue = newQueue();
    await joined(queue, 'living');
    await joined(queue, 'dead');
    await store.add(queue, [newJob('kept'), newJob('lost')]);
    await claim(queue, 1, 'living');
    await claim(queue, 1, 'dead');
    await second(queue, 'living', 'dead');
    bench.now += jump;
    const found: string[] = [];
    for (let i = 0; i < (2 * LEASE) / SECOND; i++) found.push(...(await second(queue, 'living')));
    bench.now -= Math.min(0, jump);
    return found;
  };

  describe('when the clock is changed', () => {
    it('forward: live workers are not declared dead', async () => {
      expect(await after(HOUR)).toEqual(['lost']);
    });

    it('backward: the work of a dead worker returns without extra delay', async () => {
      expect(await after(-HOUR)).toEqual(['lost']);
    });

    it('slightly backward: live workers are not declared dead', async () => {
      expect(await after(-LEASE + SECOND)).toEqual(['lost']);
    });

    it('backward: a rate limit does not block until the clock has caught up', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.configure(queue, { limits: { rate: { count: 1, per: SECOND } } });
      await store.add(queue, [newJob('a'), newJob('b')]);
      expect(names(await claim(queue, 2))).toEqual(['a']);
      bench.now -= HOUR;
      const later = await claim(queue, 2);
      bench.now += SECOND;
      expect(names([...later, ...(await claim(queue, 2))])).toEqual(['b']);
      bench.now += HOUR;
    });
  });
}
