import { afterEach, describe, expect, it } from 'vitest';
import { finish } from '../../dist/job/transitions.js';
import { openStore } from '../../dist/store/open.js';
import { newJob, settlementOf } from '../support/jobs.js';
import { STORES } from '../support/stores.js';
import { inventoryOf, leftovers } from './history/leftovers.js';

const LEASE = 60_000;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe.each(STORES)('when everything has ended and its time is over, on %s', (_name, fresh) => {
  it('no record, key, lease, session or dependency is left, although nothing was removed by hand', async () => {
    let now = 1_800_000_000_000;
    const { url, stop } = await fresh();
    cleanups.push(stop);
    const store = await openStore(url, { timeout: 5_000, clock: () => now });
    cleanups.push(() => store.close());
    const sweep = async () => {
      for (let i = 0; i < 3; i++) await store.sweep('q', { lease: LEASE, every: 0 });
    };
    await store.join('q', 'w', { lease: LEASE, info: '{}' });
    const keep = { done: { ms: 1_000, count: 10 }, dead: { ms: 1_000, count: 10 } };
    const round = async (n: number) => {
      const unique = (scope: 'alive' | 'window' | 'waiting') => ({ key: `${scope}-${n}`, scope, ttl: 500 });
      await store.add('q', [
        newJob(`a${n}`, { spec: { keep, unique: unique('window'), idWindow: 2_000 } }),
        newJob(`b${n}`, { spec: { keep, unique: unique('alive'), group: `g${n}`, reservation: 5_000 } }),
        newJob(`c${n}`, { spec: { keep, unique: unique('waiting') }, delay: 10, priority: 3 }),
        newJob(`d${n}`, { spec: { keep, needs: [{ queue: 'q', id: `a${n}`, on: 'success' }] } }),
      ]);
      await store.push('q', [Buffer.from('task')]);
      await store.watchForEnd('q', [`a${n}`]);
      now += 20;
      for (let i = 0; i < 8; i++) {
        const { entries } = await store.claim({ queue: 'q', worker: 'w', lease: LEASE }, 10);
        for (const { lease, job } of entries) {
          if (job) await store.recordProgress('q', lease, { progress: '1', log: 'x\n' });
        }
        const task = { attempt: 1, crashes: 0, spec: newJob('x').spec };
        const settlements = entries.map((entry) => settlementOf(entry, finish(entry.job ?? task)));
        expect(await store.settle('q', settlements)).toEqual(settlements.map(() => true));
      }
      expect(await store.count('q')).toMatchObject({ done: 4, ready: 0, active: 0, scheduled: 0, blocked: 0 });
      // Every time that was mentioned is over, and those who waited for an end no longer need its record.
      for (let i = 0; i < 4; i++) {
        now += 30_000;
        await store.heartbeat([{ queue: 'q', worker: 'w', lease: LEASE }]);
        await sweep();
      }
      return inventoryOf(url);
    };
    // The first round leaves what a queue with groups always has.
    const before = await round(1);
    expect(leftovers(before, await round(2))).toEqual([]);
  });
});
