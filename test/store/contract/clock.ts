import { beforeAll, describe, expect, it } from 'vitest';
import { lose } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { names, newJob, settlementOf } from '../../support/jobs.js';
import { type Bench, LEASE } from './setup.js';

const HOUR = 3_600_000;
const SECOND = 1_000;

/** A clock that somebody sets. */
export function testClock(bench: Bench): void {
  const { newQueue, joined, session, claim } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  /** A second passes: the living beat, and somebody looks after the queue. Returns what was found lost. */
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
  /** Two workers with a job each, one of which is gone; what the next seconds find lost. */
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

  describe('a clock that is set', () => {
    it('forward: nobody who is there is taken for dead', async () => {
      expect(await after(HOUR)).toEqual(['lost']);
    });

    it('back: the work of the dead returns as soon as ever', async () => {
      expect(await after(-HOUR)).toEqual(['lost']);
    });

    it('back by little: nobody who is there is taken for dead', async () => {
      expect(await after(-LEASE + SECOND)).toEqual(['lost']);
    });

    it('back: a rate does not stand still until the clock has caught up', async () => {
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
