import { beforeAll, describe, expect, it } from 'vitest';
import { readAttempts, writeAttempt } from '../../../dist/job/attempt.js';
import type { Entry } from '../../../dist/job/job.js';
import { FORGETFUL_SPEC } from '../../../dist/job/spec.js';
import { die, fail, finish, lose } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { mustGet, newJob, settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import { type Bench, random, SWEEP } from './setup.js';

/** How long records, ids and the history of attempts are kept. */
export function testRetention(bench: Bench): void {
  const { newQueue, joined, claim, finishAll } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });
  const few = { done: { ms: 60_000, count: 2 }, dead: { ms: 60_000, count: 2 } };
  const ids = (prefix: string, n: number) => Array.from({ length: n }, (_x, i) => `${prefix}${i}`);
  const known = async (queue: string, all: readonly string[]) => {
    const found: string[] = [];
    for (let i = 0; i < all.length; i += 500)
      for (const job of await store.get(queue, all.slice(i, i + 500))) if (job) found.push(job.id);
    return found;
  };

  describe('records that somebody needs', () => {
    const needs = (ups: readonly string[], queue: string) => ups.map((id) => ({ queue, id, on: 'finished' as const }));

    it.each(['default', 'few', 'none'])('are kept until the dependent has ended (%s kept)', async (kind) => {
      const queue = newQueue();
      await joined(queue);
      const spec = kind === 'few' ? { keep: few } : kind === 'none' ? FORGETFUL_SPEC : {};
      const children = ids('child', 6);
      await store.add(
        queue,
        children.map((id) => newJob(id, { spec })),
      );
      await store.add(queue, [newJob('parent', { spec: { needs: needs(children, queue) } })]);
      await finishAll(queue, 6);
      await store.add(
        queue,
        ids('other', 5).map((id) => newJob(id, { spec: kind === 'default' ? {} : { keep: few } })),
      );
      const [parent] = await claim(queue, 1);
      expect(parent!.job!.id).toBe('parent');
      for (let i = 0; i < 5; i++) {
        await finishAll(queue, 1);
        bench.now += 5_000;
      }
      expect(await known(queue, children)).toEqual(children);
      if (kind === 'few')
        expect(await known(queue, ids('other', 5)), 'others are dropped').toEqual(['other3', 'other4']);
      bench.now += 120_000;
      await store.sweep(queue, SWEEP);
      expect(await known(queue, children), 'age does not matter either').toEqual(children);
      await store.settle(queue, [settlementOf(parent!, finish(parent!.job!))]);
      await store.sweep(queue, SWEEP);
      expect(await known(queue, children)).toEqual(kind === 'default' ? children : []);
      bench.now += 3_600_001;
      await store.sweep(queue, SWEEP);
      expect(await known(queue, [...children, 'parent'])).toEqual([]);
    });

    it('are kept for a dependent in another queue, also if it was added after their end', async () => {
      const [up, down] = [newQueue(), newQueue()];
      await joined(up);
      await joined(down);
      const children = ids('child', 4);
      await store.add(
        up,
        children.map((id) => newJob(id, { spec: { keep: { ...few, done: { ms: 60_000, count: 4 } } } })),
      );
      await finishAll(up, 4);
      await store.add(down, [newJob('parent', { spec: { needs: needs(children, up) } })]);
      await store.add(
        up,
        ids('other', 6).map((id) => newJob(id, { spec: { keep: few } })),
      );
      await finishAll(up, 6);
      expect(await known(up, children)).toEqual(children);
      await finishAll(down, 1);
      bench.now += 120_000;
      await until('the records are dropped', async () => {
        await store.sweep(up, SWEEP);
        return (await known(up, children)).length === 0;
      });
    });

    it('are dropped when the dependent is cancelled, even by a chain of failures', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a', { spec: { keep: few } }), newJob('b', { spec: { keep: few } })]);
      await store.add(queue, [
        newJob('c', { spec: { keep: few, needs: [{ queue, id: 'a', on: 'success' }] } }),
        newJob('d', {
          spec: {
            needs: [
              { queue, id: 'c', on: 'success' },
              { queue, id: 'b', on: 'success' },
            ],
          },
        }),
      ]);
      const [a, b] = await claim(queue, 2);
      await store.settle(queue, [settlementOf(b!, finish(b!.job!))]);
      await store.settle(queue, [settlementOf(a!, die(a!.job!, 'no'))]);
      expect((await mustGet(store, queue, 'd')).state).toBe('cancelled');
      bench.now += 60_001;
      await store.sweep(queue, SWEEP);
      expect(await known(queue, ['a', 'b', 'c'])).toEqual([]);
    });

    it('are neither listed nor counted once they would have been dropped, and can be removed', async () => {
      const queue = newQueue();
      await joined(queue);
      const children = ids('child', 3);
      const others = ids('other', 2);
      await store.add(
        queue,
        [...children, ...others].map((id) => newJob(id, { spec: { keep: few } })),
      );
      await store.add(queue, [newJob('parent', { delay: 1e6, spec: { needs: needs(children, queue) } })]);
      for (let i = 0; i < 5; i++) {
        await finishAll(queue, 1);
        bench.now += 5_000;
      }
      expect(await known(queue, [...children, ...others])).toHaveLength(5);
      expect((await store.count(queue)).done).toBe(2);
      const { jobs } = await store.list(queue, { state: 'done', limit: 10 });
      expect(jobs.map(({ id }) => id).sort()).toEqual(others);
      expect(await store.remove(queue, ['child0', 'other0'])).toEqual([true, true]);
      expect(await known(queue, [...children, ...others])).toEqual(['child1', 'child2', 'other1']);
      expect((await store.count(queue)).done).toBe(1);
      await store.cancel(queue, ['parent']);
      expect(await known(queue, children)).toEqual([]);
    });

    it('are kept for a minute for those who waited for the end', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('awaited', { spec: FORGETFUL_SPEC }), newJob('not', { spec: FORGETFUL_SPEC })]);
      await store.watchForEnd(queue, ['awaited', 'not yet there']);
      // on SQLite the request is written a moment later
      await new Promise((resolve) => setTimeout(resolve, 60));
      await finishAll(queue, 2);
      expect(await known(queue, ['awaited', 'not'])).toEqual(['awaited']);
      bench.now += 59_000;
      await store.sweep(queue, SWEEP);
      expect(await known(queue, ['awaited'])).toEqual(['awaited']);
      bench.now += 2_000;
      await store.sweep(queue, SWEEP);
      await store.sweep(queue, SWEEP);
      expect(await known(queue, ['awaited'])).toEqual([]);
    });
  });

  it('a record that is only there for somebody who waited gives way to a new job of its id; that of an upstream does not', async () => {
    const queue = newQueue();
    await joined(queue);
    const needs = [{ queue, id: 'upstream', on: 'success' as const }];
    await store.add(queue, [newJob('again', { spec: FORGETFUL_SPEC }), newJob('upstream', { spec: FORGETFUL_SPEC })]);
    await store.add(queue, [newJob('parent', { delay: 1e6, spec: { needs } })]);
    await store.watchForEnd(queue, ['again', 'upstream']);
    await new Promise((resolve) => setTimeout(resolve, 60)); // on SQLite the request is written a moment later
    await finishAll(queue, 2);
    expect(await known(queue, ['again', 'upstream'])).toEqual(['again', 'upstream']);
    const added = await store.add(queue, [newJob('again'), newJob('upstream')]);
    expect(added).toEqual([{ outcome: 'created' }, { outcome: 'duplicate', id: 'upstream' }]);
    expect((await mustGet(store, queue, 'again')).state).toBe('ready');
    await finishAll(queue, 1);
    bench.now += 61_000;
    await store.sweep(queue, SWEEP);
    expect(await mustGet(store, queue, 'again')).toMatchObject({ state: 'done' });
  });

  it('done jobs are not dropped for their number within five seconds, so that whoever asks at once finds them', async () => {
    const queue = newQueue();
    await joined(queue);
    for (const keep of [few, undefined]) {
      const all = ids(keep ? 'few' : 'default', keep ? 6 : 1_100);
      await store.add(queue, all.map((id) => newJob(id, { spec: keep ? { keep } : {} })).slice(0, 1_000));
      if (all.length > 1_000)
        await store.add(
          queue,
          all.slice(1_000).map((id) => newJob(id)),
        );
      for (let left = all.length; left > 0; left -= 500) await finishAll(queue, Math.min(left, 500));
      expect(await known(queue, all)).toHaveLength(all.length);
      bench.now += 5_000;
      await store.add(queue, [newJob(`last ${all[0]}`, { spec: keep ? { keep } : {} })]);
      await finishAll(queue, 1);
      await store.sweep(queue, SWEEP);
      expect((await known(queue, all)).length).toBeLessThan(keep ? 3 : 1_001);
      await store.obliterate(queue);
    }
  });

  it('a dependency on a job of another queue whose record is gone is refused', async () => {
    const [up, down] = [newQueue(), newQueue()];
    await joined(up);
    await joined(down);
    const needs = [{ queue: up, id: 'u', on: 'success' as const }];
    await store.add(up, [newJob('u', { spec: FORGETFUL_SPEC })]);
    await store.add(down, [newJob('first', { spec: { needs } })]);
    await finishAll(up, 1);
    await until('the first dependent may run', async () => (await mustGet(store, down, 'first')).state === 'ready');
    await finishAll(down, 1);
    await until('the record is gone', async () => {
      await store.sweep(up, SWEEP);
      return (await known(up, ['u'])).length === 0;
    });
    const second = store.add(down, [newJob('second', { spec: { needs } })]);
    await expect(second).rejects.toMatchObject({ code: 'UNKNOWN_UPSTREAM' });
    expect(await known(down, ['second'])).toEqual([]);
  });

  describe('ids chosen by the producer', () => {
    const named = (id: string, window = 10_000) => newJob(id, { spec: { keep: few, idWindow: window } });

    it.each(['done', 'dead', 'cancelled'])('stay taken for their window, however many others end (%s)', async (how) => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [named('mine')]);
      if (how === 'cancelled') await store.cancel(queue, ['mine']);
      else {
        const [entry] = await claim(queue, 1);
        const move = how === 'done' ? finish(entry!.job!) : die(entry!.job!, 'no');
        await store.settle(queue, [settlementOf(entry!, move)]);
      }
      bench.now += 5_000;
      const others = ids('other', 8);
      await store.add(
        queue,
        others.map((id) => newJob(id, { spec: { keep: few } })),
      );
      const entries = await claim(queue, 8);
      const move = (entry: Entry) => (how === 'dead' ? die(entry.job!, 'no') : finish(entry.job!));
      if (how === 'cancelled') await store.cancel(queue, others);
      else
        await store.settle(
          queue,
          entries.map((entry) => settlementOf(entry, move(entry))),
        );
      expect(await known(queue, ['mine']), 'its record is gone').toEqual([]);
      const duplicate = { outcome: 'duplicate', id: 'mine' };
      expect(await store.add(queue, [named('mine'), newJob('new')])).toEqual([duplicate, { outcome: 'created' }]);
      expect(await store.add(queue, [{ ...named('mine'), priority: 2 }])).toEqual([duplicate]);
      const grouped = { ...named('mine'), spec: { ...named('mine').spec, group: 'g' } };
      expect(await store.add(queue, [grouped])).toEqual([duplicate]);
      bench.now += 10_001;
      await store.sweep(queue, SWEEP);
      expect(await store.add(queue, [named('mine')])).toEqual([{ outcome: 'created' }]);
      await store.obliterate(queue);
    });

    it('are free again when the job is removed, replaced, or the queue is obliterated', async () => {
      const queue = newQueue();
      await joined(queue);
      const all = ['a', 'b', 'c'];
      await store.add(
        queue,
        all.map((id) => named(id)),
      );
      await finishAll(queue, 3);
      await store.remove(queue, ['a']);
      expect(await store.add(queue, [named('a'), { ...named('b'), replaceEnded: true }, named('c')])).toEqual([
        { outcome: 'created' },
        { outcome: 'created' },
        { outcome: 'duplicate', id: 'c' },
      ]);
      await store.obliterate(queue);
      expect(await store.add(queue, [named('c')])).toEqual([{ outcome: 'created' }]);
    });
  });

  it('dead jobs that are dropped because there are too many are counted', async () => {
    const queue = newQueue();
    await joined(queue);
    await store.add(
      queue,
      ids('j', 5).map((id) => newJob(id, { spec: { keep: few } })),
    );
    expect((await store.count(queue)).droppedDead).toBeUndefined();
    const entries = await claim(queue, 5);
    await store.settle(
      queue,
      entries.map((entry) => settlementOf(entry, die(entry.job!, 'no'))),
    );
    expect(await store.count(queue)).toMatchObject({ dead: 2, droppedDead: 3 });
    expect(await store.sweep(queue, SWEEP)).toMatchObject({ droppedDead: 3 });
  });

  describe('attempts', () => {
    const line = (attempt: number, message: string) =>
      writeAttempt({ attempt, outcome: 'failed', endedAt: 5, worker: 'w1', error: { name: 'E', message } });

    it('are kept as a history: of jobs, of tasks that become jobs, through retries of dead jobs', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('j', { spec: { attempts: 2 } })]);
      for (const attempt of [1, 2]) {
        const [entry] = await claim(queue, 1);
        const move = fail(entry!.job!, `no ${attempt}`, { random, now: 0, delay: 0 });
        const settled = { ...settlementOf(entry!, move), attempt: line(attempt, `no ${attempt}`) };
        expect(await store.settle(queue, [settled])).toEqual([true]);
      }
      expect(readAttempts((await mustGet(store, queue, 'j')).attempts!)).toEqual([
        { attempt: 1, outcome: 'failed', endedAt: 5, worker: 'w1', error: { name: 'E', message: 'no 1' } },
        { attempt: 2, outcome: 'failed', endedAt: 5, worker: 'w1', error: { name: 'E', message: 'no 2' } },
      ]);
      await store.rerun(queue, ['j'], ['dead']);
      expect(readAttempts((await mustGet(store, queue, 'j')).attempts!)).toHaveLength(2);
      await store.push(queue, [Buffer.from('task')]);
      const taken = (await claim(queue, 2)).find(({ task }) => task)!;
      const outcome = lose({ attempt: 1, crashes: 0, spec: newJob('x').spec }, 3, 'w1');
      const settled = { ...settlementOf(taken, outcome, newJob('task')), attempt: line(1, 'lost') };
      await store.settle(queue, [settled]);
      expect(readAttempts((await mustGet(store, queue, 'task')).attempts!)).toHaveLength(1);
    });

    it('are not written by a stale settlement, and are bounded', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('j', { spec: { attempts: 100 } })]);
      let stale: Entry | undefined;
      for (let attempt = 1; attempt <= 20; attempt++) {
        const [entry] = await claim(queue, 1);
        const move = fail(entry!.job!, 'no', { random, now: 0, delay: 0 });
        const message = `${'ä'.repeat(6_000)} ${attempt}`;
        await store.settle(queue, [{ ...settlementOf(entry!, move), attempt: line(attempt, message) }]);
        stale ??= entry;
      }
      const late = { ...settlementOf(stale!, finish(stale!.job!)), attempt: line(99, 'stale') };
      expect(await store.settle(queue, [late])).toEqual([false]);
      const kept = readAttempts((await mustGet(store, queue, 'j')).attempts!);
      expect(kept.length).toBeGreaterThan(3);
      expect(kept.length).toBeLessThan(20);
      expect(kept.at(-1)!.attempt).toBe(20);
    });

    it('of a done job say when it started and where', async () => {
      const queue = newQueue();
      await joined(queue, 'worker of a done job');
      await store.add(queue, [newJob('plain'), newJob('result'), newJob('grouped', { spec: { group: 'g' } })]);
      const startedAt = bench.now;
      const entries = await claim(queue, 3, 'worker of a done job');
      bench.now += 500;
      for (const entry of entries) {
        const result = entry.job!.id === 'result' ? '{"ok":true}' : undefined;
        await store.settle(queue, [settlementOf(entry, finish(entry.job!, result))]);
      }
      const ran = { state: 'done', startedAt, finishedAt: bench.now, worker: 'worker of a done job' };
      expect(await mustGet(store, queue, 'plain')).toMatchObject(ran);
      expect(await mustGet(store, queue, 'grouped')).toMatchObject(ran);
      expect(await mustGet(store, queue, 'result')).toMatchObject({ ...ran, result: '{"ok":true}' });
    });
  });
}
