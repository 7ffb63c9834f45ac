import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { finish } from '../../dist/job/transitions.js';
import { openStore } from '../../dist/store/open.js';
import { scriptOf } from '../../dist/store/redis/scripts.js';
import type { Store } from '../../dist/store/store.js';
import { names, newJob, settlementOf } from '../support/jobs.js';

const PREFIX = 'moves';
const SWEEP = { lease: 10_000, every: 0 };

/** A process that dies in the middle of a move has run some of its scripts and not the others. */
describe('a move that is interrupted, on Redis', () => {
  let store: Store;
  let redis: Redis;
  let now = 1_800_000_000_000;
  let queues = 0;
  beforeAll(async () => {
    store = await openStore(`${inject('redisUrl')}?prefix=${PREFIX}`, { timeout: 10_000, clock: () => now });
    redis = new Redis(inject('redisUrl'));
  });
  afterAll(async () => {
    redis.disconnect();
    await store.close();
  });

  const stemOf = (queue: string) => `${PREFIX}:{${PREFIX}:queues:${queue}}:`;
  const run = (script: 'move_out' | 'move_in', queue: string, args: (string | Buffer)[]) =>
    redis.callBuffer(
      'EVAL',
      ...[scriptOf(script).source, '2', `${PREFIX}:queues:${queue}`, stemOf(queue), String(now), ...args],
    ) as Promise<Buffer[]>;
  const started = async () => {
    queues += 1;
    const [from, to] = [`from-${queues}`, `to-${queues}`];
    for (const queue of [from, to]) await store.join(queue, 'w', { lease: 100_000, info: '' });
    await store.add(from, [newJob('a'), newJob('b', { delay: 5_000 })]);
    const taken = await run('move_out', from, [to, 'nonce', '', 'a', '', 'b', '']);
    return { from, to, messages: [taken[1]!, taken[3]!] };
  };
  const claimed = async (queue: string) => (await store.claim({ queue, worker: 'w', lease: 100_000 }, 9)).entries;
  const leftovers = (queue: string) => redis.exists(`${stemOf(queue)}moving`);

  it('after the jobs were taken out: the next sweep delivers them, and their ids stay taken meanwhile', async () => {
    const { from, to } = await started();
    expect(await store.get(from, ['a'])).toEqual([undefined]);
    expect(await store.add(from, [newJob('a')])).toEqual([{ outcome: 'duplicate', id: 'a' }]);
    await store.sweep(from, SWEEP);
    expect(await store.count(to)).toMatchObject({ ready: 1, scheduled: 1 });
    expect(await leftovers(from)).toBe(0);
    expect(await store.add(from, [newJob('a')])).toEqual([{ outcome: 'created' }]);
  });

  it('after they were delivered: they are not delivered again, even if they have ended since', async () => {
    const { from, to, messages } = await started();
    expect(await run('move_in', to, [String(now), '', ...messages])).toEqual([Buffer.from('in'), Buffer.from('in')]);
    const [entry] = await claimed(to);
    await store.settle(to, [settlementOf(entry!, finish(entry!.job!))]);
    await store.remove(to, ['a']);
    now += 3_600_000;
    await store.sweep(from, SWEEP);
    expect(await leftovers(from)).toBe(0);
    expect(await store.get(to, ['a'])).toEqual([undefined]);
    expect(names(await claimed(to))).toEqual(['b']);
  });

  it('by a process that was stopped for long: what it has read is refused', async () => {
    const { from, to, messages } = await started();
    const read = now;
    await store.sweep(from, SWEEP);
    const [entry] = await claimed(to);
    await store.settle(to, [settlementOf(entry!, finish(entry!.job!))]);
    await store.remove(to, ['a']);
    now += 700_000;
    await store.sweep(to, SWEEP);
    const replies = await run('move_in', to, [String(read), '', messages[0]!]);
    expect(replies.map(String)).toEqual(['stale']);
    expect(await store.get(to, ['a'])).toEqual([undefined]);
  });

  it('and whose id was taken meanwhile in the other queue: the job returns', async () => {
    const { from, to } = await started();
    await store.add(to, [newJob('a', { payload: '"another"' })]);
    await store.sweep(from, SWEEP);
    expect(await leftovers(from)).toBe(0);
    expect((await store.get(from, ['a']))[0]).toMatchObject({ state: 'ready', payload: '"a"' });
    expect((await store.get(to, ['a']))[0]).toMatchObject({ payload: '"another"' });
    expect(names(await claimed(from))).toEqual(['a']);
    expect((await store.count(to)).scheduled).toBe(1);
  });

  it('and repeated by its caller goes on where it was', async () => {
    const { from, to } = await started();
    expect(await store.move(from, ['a', 'b'], to)).toEqual(['moved', 'moved']);
    expect(await store.count(to)).toMatchObject({ ready: 1, scheduled: 1 });
    expect(await leftovers(from)).toBe(0);
  });
});
