import { beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../dist/job/id.js';
import type { Body, Spec } from '../../../dist/job/job.js';
import { die, finish } from '../../../dist/job/transitions.js';
import type { Store } from '../../../dist/store/store.js';
import { mustGet, names, newJob, settlementOf } from '../../support/jobs.js';
import type { Bench } from './setup.js';

/** Adding and claiming jobs. */
export function testAdding(bench: Bench): void {
  const { newQueue, session, joined, claim } = bench;
  let store: Store;
  beforeAll(() => {
    ({ store } = bench);
  });

  describe('adding and claiming', () => {
    it('replaces only a job that has ended, and only if requested', async () => {
      const queue = newQueue();
      await joined(queue);
      const again = (id: string, payload: string) => ({ ...newJob(id), payload, replaceEnded: true });
      await store.add(queue, [newJob('done'), newJob('dead'), newJob('gone'), newJob('active')]);
      await store.cancel(queue, ['gone']);
      const [done, dead] = await claim(queue, 2);
      await store.settle(queue, [settlementOf(done!, finish(done!.job!)), settlementOf(dead!, die(dead!.job!, 'no'))]);
      await claim(queue, 1);
      await store.add(queue, [newJob('ready')]);
      const ids = ['done', 'dead', 'gone', 'active', 'ready', 'new'];
      const outcomes = await store.add(
        queue,
        ids.map((id) => again(id, '"second"')),
      );
      expect(outcomes.map(({ outcome }) => outcome)).toEqual([
        ...['created', 'created', 'created', 'duplicate', 'duplicate', 'created'],
      ]);
      expect(await store.count(queue)).toMatchObject({ ready: 5, active: 1, done: 0, dead: 0, cancelled: 0 });
      expect((await mustGet(store, queue, 'dead')).payload).toBe('"second"');
      expect((await mustGet(store, queue, 'ready')).payload).not.toBe('"second"');
    });

    it('delivers jobs in the order they were added, each once', async () => {
      const queue = newQueue();
      await joined(queue);
      expect(await store.add(queue, [newJob('a'), newJob('b'), newJob('c')])).toEqual(
        Array(3).fill({ outcome: 'created' }),
      );
      expect(names(await claim(queue, 2))).toEqual(['a', 'b']);
      expect(names(await claim(queue, 5))).toEqual(['c']);
      expect(names(await claim(queue, 5))).toEqual([]);
    });

    it('reports whether more entries are waiting', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a'), newJob('b')]);
      expect((await store.claim(session(queue), 1)).more).toBe(true);
      expect((await store.claim(session(queue), 1)).more).toBe(false);
    });

    it('shows a claimed job as active, with its worker, token and attempt', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a')]);
      const [entry] = await claim(queue, 1);
      const job = await mustGet(store, queue, 'a');
      expect(job).toMatchObject({ state: 'active', attempt: 1, crashes: 0, worker: 'w1', token: entry!.lease.token });
      expect(entry!.job).toMatchObject({ id: 'a', payload: '"a"', attempt: 1, createdAt: bench.now });
    });

    it('accepts an id once while its record exists', async () => {
      const queue = newQueue();
      await store.add(queue, [newJob('a')]);
      expect(await store.add(queue, [newJob('a'), newJob('b'), newJob('b')])).toEqual([
        { outcome: 'duplicate', id: 'a' },
        { outcome: 'created' },
        { outcome: 'duplicate', id: 'b' },
      ]);
      expect((await store.count(queue)).ready).toBe(2);
    });

    it('accepts each id once among many of one call, and keeps the order of the others', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('b', { payload: '"first"' })]);
      const ids = ['a', 'b', 'c', 'a', ...Array.from({ length: 60 }, (_x, i) => `j${i}`), 'c'];
      const outcomes = await store.add(
        queue,
        ids.map((id) => newJob(id)),
      );
      const refused = ids.flatMap((id, i) => (outcomes[i]!.outcome === 'created' ? [] : [`${i} ${id}`]));
      expect(refused).toEqual(['1 b', '3 a', `${ids.length - 1} c`]);
      const distinct = ['b', ...new Set(ids.filter((id) => id !== 'b'))];
      const entries = await claim(queue, 100);
      expect(entries.map(({ job }) => job!.id)).toEqual(distinct);
      expect(entries[0]!.job!.payload).toBe('"first"');
    });

    it('serves higher priorities first, and each priority in order', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [
        newJob('low', { priority: -5 }),
        newJob('n1'),
        newJob('high1', { priority: 7 }),
        newJob('top', { priority: 100 }),
        newJob('high2', { priority: 7 }),
        newJob('n2'),
      ]);
      expect(names(await claim(queue, 3))).toEqual(['top', 'high1', 'high2']);
      expect(names(await claim(queue, 9))).toEqual(['n1', 'n2', 'low']);
    });

    it('preserves payloads byte for byte', async () => {
      const queue = newQueue();
      await joined(queue);
      const bytes = Uint8Array.from({ length: 256 }, (_x, i) => i);
      const text = JSON.stringify({ text: 'naïve \u0000 \u2028 😀', list: [1, null] });
      await store.add(queue, [
        newJob('bytes', { payload: bytes }),
        newJob('text', { payload: text }),
        newJob('none', { payload: '' }),
      ]);
      const entries = await claim(queue, 3);
      expect(Buffer.from(entries[0]!.job!.payload as Uint8Array)).toEqual(Buffer.from(bytes));
      expect(entries[1]!.job!.payload).toBe(text);
      expect(entries[2]!.job!.payload).toBe('');
    });

    it.each([1, 3, 4, 200])('keeps the order, options and payloads of %i new jobs added at once', async (count) => {
      const payloads = ['"plain"', JSON.stringify('é'.repeat(40)), JSON.stringify('😀 \u0000'), ''];
      const bytes = Uint8Array.from([0, 255, 128]);
      const fill = (payload: (i: number) => Body, spec: (i: number) => Partial<Spec> = () => ({})) =>
        Array.from({ length: count }, (_x, i) => newJob(newId(), { fresh: true, payload: payload(i), spec: spec(i) }));
      const texts = fill((i) => payloads[i % payloads.length]!);
      const mixed = fill((i) => (i % 3 === 2 ? bytes : payloads[0]!));
      const other = fill(
        () => '1',
        (i) => ({ attempts: 1 + (i % 3) }),
      );
      for (const jobs of [texts, mixed, other]) {
        const queue = newQueue();
        await joined(queue);
        expect(await store.add(queue, jobs)).toEqual(Array(count).fill({ outcome: 'created' }));
        expect(await store.add(queue, [{ ...jobs[0]!, fresh: false }])).toMatchObject([{ outcome: 'duplicate' }]);
        expect(await store.count(queue)).toMatchObject({ ready: count });
        const found = (await claim(queue, count)).map(({ job }) => job!);
        expect(found.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
        expect(found.map(({ spec }) => spec.attempts)).toEqual(jobs.map(({ spec }) => spec.attempts));
        const plain = (payload: Body) => (typeof payload === 'string' ? payload : [...payload]);
        expect(found.map(({ payload }) => plain(payload))).toEqual(jobs.map(({ payload }) => plain(payload)));
      }
    });

    it('keeps names distinct whatever characters they contain', async () => {
      const queue = newQueue();
      const odd = [
        `${queue}:{a}`,
        `${queue}:%7Ba%7D`,
        `${queue}*`,
        `${queue}?[x]`,
        `${queue}\n`,
        `${queue}__proto__`,
        `${queue} é`,
      ];
      for (const one of odd) await store.add(one, [newJob('a b\n:{}*', { payload: JSON.stringify(one) })]);
      for (const one of odd) {
        await joined(one, 'w:{}* \n');
        const [entry] = await claim(one, 2, 'w:{}* \n');
        expect(entry!.job!.payload).toBe(JSON.stringify(one));
        const job = await mustGet(store, one, 'a b\n:{}*');
        expect(job.worker).toBe('w:{}* \n');
      }
      expect(await store.queues()).toEqual(expect.arrayContaining(odd));
    });

    it('refuses to claim for a worker without a session', async () => {
      const queue = newQueue();
      await store.add(queue, [newJob('a')]);
      expect(await store.claim(session(queue, 'nobody'), 1)).toMatchObject({ status: 'lost', entries: [] });
      expect((await store.count(queue)).ready).toBe(1);
    });

    it('delivers nothing while paused', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('a')]);
      expect((await store.settings(queue)).paused).toBe(false);
      await store.configure(queue, { paused: true });
      expect((await store.settings(queue)).paused).toBe(true);
      expect(await store.claim(session(queue), 1)).toMatchObject({ status: 'paused', entries: [] });
      await store.configure(queue, { paused: false });
      expect((await store.settings(queue)).paused).toBe(false);
      expect(names(await claim(queue, 1))).toEqual(['a']);
    });

    it('refuses jobs beyond the capacity in count and bytes', async () => {
      const queue = newQueue();
      await joined(queue);
      const outcomes = await store.add(queue, [newJob('a'), newJob('b'), newJob('c')], { count: 2 });
      expect(outcomes.map((one) => one.outcome)).toEqual(['created', 'created', 'full']);
      expect(await store.push(queue, [Buffer.from('t')], { count: 2 })).toBe(false);
      await claim(queue, 1);
      expect(await store.push(queue, [Buffer.from('t')], { count: 2 })).toBe(true);
      const big = newJob('big', { payload: JSON.stringify('x'.repeat(5_000)) });
      expect(await store.add(queue, [big], { bytes: 4_000 })).toEqual([{ outcome: 'full' }]);
      expect(await store.add(queue, [big], { bytes: 9_000 })).toEqual([{ outcome: 'created' }]);
    });
  });

  describe('time', () => {
    it('runs nothing before its time and promotes jobs in order of time', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [
        newJob('later', { delay: 200 }),
        newJob('sooner', { at: bench.now + 100 }),
        newJob('past', { at: bench.now - 5 }),
      ]);
      const first = await store.claim(session(queue), 5);
      expect(names(first.entries)).toEqual(['past']);
      expect(first.nextAt).toBe(bench.now + 100);
      bench.now += 99;
      expect(names(await claim(queue, 5))).toEqual([]);
      bench.now += 101;
      expect(names(await claim(queue, 5))).toEqual(['sooner', 'later']);
    });

    it('keeps the priority of a delayed job', async () => {
      const queue = newQueue();
      await joined(queue);
      await store.add(queue, [newJob('n'), newJob('p', { delay: 10, priority: 2 })]);
      bench.now += 10;
      expect(names(await claim(queue, 5))).toEqual(['p', 'n']);
    });
  });
}
