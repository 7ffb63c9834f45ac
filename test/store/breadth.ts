import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Entry, type Job, type NewJob, STATES, type Unique, type UniqueMode } from '../../dist/job/job.js';
import { die, fail, finish, lose, type Move, release } from '../../dist/job/transitions.js';
import type { Beat, Store } from '../../dist/store/store.js';
import { mustGet, names, newJob, settlementOf } from '../support/jobs.js';
import type { StoreUnderTest } from './conformance.js';

const LEASE = 10_000;

/** The second half of the contract: what every store does beyond adding, claiming and settling. */
export function testBreadth({ name, open, firesSchedules = false }: StoreUnderTest): void {
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

    describe('pace', () => {
      const entryNames = async (queue: string, n: number, worker = 'w1') => names(await claim(queue, n, worker));
      const jobs = (prefix: string, count: number, group?: string) =>
        Array.from({ length: count }, (_x, i) =>
          newJob(`${prefix}${i}`, group === undefined ? {} : { spec: { group } }),
        );
      const settle = (queue: string, entries: Entry[], how: (job: Job) => Move) =>
        store.settle(
          queue,
          entries.map((entry) => settlementOf(entry, how(entry.job!))),
        );

      it('is remembered and can be lifted', async () => {
        const queue = newQueue();
        expect(await store.pace(queue)).toEqual({});
        const pace = { concurrency: 3, rate: { count: 5, per: 100 }, group: { rate: { count: 1, per: 10 } } };
        await store.setPace(queue, pace);
        expect(await store.pace(queue)).toEqual(pace);
        await store.setPace(queue, {});
        expect(await store.pace(queue)).toEqual({});
      });

      it('lets only so many run at once, jobs and tasks together, whoever asks', async () => {
        const queue = newQueue();
        await joined(queue);
        await joined(queue, 'w2');
        await store.setPace(queue, { concurrency: 3 });
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

      it('lets only so many start per interval, and says when more may', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.setPace(queue, { rate: { count: 3, per: 1_000 } });
        await store.add(queue, jobs('j', 5));
        expect(await entryNames(queue, 2)).toEqual(['j0', 'j1']);
        const opened = now;
        now += 400;
        const second = await store.claim(session(queue), 2);
        expect({ names: names(second.entries), more: second.more, nextAt: second.nextAt }).toEqual({
          names: ['j2'],
          more: false,
          nextAt: opened + 1_000,
        });
        expect(await entryNames(queue, 2)).toEqual([]);
        now = opened + 1_000;
        expect(await entryNames(queue, 9)).toEqual(['j3', 'j4']);
      });

      it('gives each group its turn, however noisy one is', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [...jobs('a', 5, 'A'), ...jobs('b', 2, 'B'), ...jobs('c', 1, 'C')]);
        expect(await entryNames(queue, 4)).toEqual(['a0', 'b0', 'c0', 'a1']);
        await store.add(queue, jobs('d', 2, 'D'));
        expect(await entryNames(queue, 9)).toEqual(['b1', 'a2', 'd0', 'a3', 'd1', 'a4']);
        expect((await store.count(queue)).ready).toBe(0);
      });

      it('shares between groups and jobs without one, and keeps priorities within a group', async () => {
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

      it('lets only so many of a group run, and the end of one lets the next begin', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.setPace(queue, { group: { concurrency: 1 } });
        await store.add(queue, [...jobs('a', 3, 'A'), ...jobs('b', 2, 'B'), ...jobs('n', 2)]);
        const first = await claim(queue, 9);
        expect(names(first).sort()).toEqual(['a0', 'b0', 'n0', 'n1']);
        expect(await store.claim(session(queue), 9)).toMatchObject({ entries: [], more: false });
        const of = (id: string) => first.filter((entry) => entry.job!.id === id);
        await settle(queue, of('b0'), (job) => fail(job, 'x', { random: () => 0, delay: 50 }));
        expect(await entryNames(queue, 9)).toEqual(['b1']);
        await settle(queue, of('a0'), release);
        const again = await claim(queue, 9);
        expect(names(again)).toEqual(['a0']);
        expect(await store.cancel(queue, ['a0'])).toEqual([true]);
        expect(await entryNames(queue, 9)).toEqual(['a1']);
        now += 50;
        expect(await entryNames(queue, 9)).toEqual([]);
        expect((await store.count(queue)).ready).toBe(2);
      });

      it('frees what a dead worker held of a group', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.setPace(queue, { concurrency: 1, group: { concurrency: 1 } });
        await store.add(queue, jobs('a', 2, 'A'));
        expect(await entryNames(queue, 9)).toEqual(['a0']);
        await joined(queue, 'w2');
        for (let i = 0; i < 3; i++) {
          now += LEASE / 2;
          await store.beat([session(queue, 'w2')]);
          const { lost } = await store.sweep(queue, { lease: LEASE, every: 0 });
          await settle(queue, lost, (job) => lose(job, 3, 'w1'));
        }
        expect(await entryNames(queue, 9, 'w2')).toEqual(['a0']);
        expect(await entryNames(queue, 9, 'w2')).toEqual([]);
      });

      it('lets only so many of a group start per interval', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.setPace(queue, { group: { rate: { count: 2, per: 1_000 } } });
        await store.add(queue, [...jobs('a', 4, 'A'), ...jobs('b', 1, 'B')]);
        const first = await store.claim(session(queue), 9);
        expect(names(first.entries)).toEqual(['a0', 'b0', 'a1']);
        expect({ more: first.more, nextAt: first.nextAt }).toEqual({ more: false, nextAt: now + 1_000 });
        await settle(queue, first.entries, finish);
        expect(await entryNames(queue, 9)).toEqual([]);
        now += 1_000;
        expect(await entryNames(queue, 9)).toEqual(['a2', 'a3']);
      });

      it('opens groups that were at their limit when the limit is raised', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.setPace(queue, { group: { concurrency: 1 } });
        await store.add(queue, [...jobs('a', 3, 'A'), ...jobs('b', 3, 'B')]);
        expect(await entryNames(queue, 9)).toEqual(['a0', 'b0']);
        await store.setPace(queue, { group: { concurrency: 2 } });
        expect((await entryNames(queue, 9)).sort()).toEqual(['a1', 'b1']);
        await store.setPace(queue, {});
        expect((await entryNames(queue, 9)).sort()).toEqual(['a2', 'b2']);
      });

      it('serves raw tasks, jobs and groups alike, one by one', async () => {
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

      it('lets resting groups go on when their rate is lifted', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.setPace(queue, { group: { rate: { count: 1, per: 3_600_000 } } });
        await store.add(queue, jobs('a', 2, 'A'));
        expect(await entryNames(queue, 9)).toEqual(['a0']);
        await store.setPace(queue, {});
        expect(await entryNames(queue, 9)).toEqual(['a1']);
      });

      it('shows, cancels, revives and forgets jobs of groups as any other', async () => {
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
        expect(await store.revive(queue, ['b0'])).toEqual([true]);
        now += 100;
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

    describe('unique keys that change what waits', () => {
      const job = (id: string, mode: UniqueMode, more: Partial<Unique> = {}, options: Partial<NewJob> = {}) =>
        newJob(id, { ...options, spec: { unique: { key: 'k', scope: 'alive', ttl: 0, mode, ...more } } });

      it('replace gives the first its new payload and starts its delay anew', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [job('a', 'replace', {}, { delay: 100 })]);
        now += 60;
        const bytes = Buffer.from([0, 255, 59]);
        expect(await store.add(queue, [job('b', 'replace', {}, { delay: 100, payload: bytes })])).toEqual([
          { outcome: 'replaced', id: 'a' },
        ]);
        now += 60;
        expect(await claim(queue, 9)).toEqual([]);
        now += 40;
        const [entry] = await claim(queue, 9);
        expect(entry!.job!.id).toBe('a');
        expect(Buffer.from(entry!.job!.payload)).toEqual(bytes);
        expect(await store.add(queue, [job('c', 'replace', {}, { payload: '"late"' })])).toEqual([
          { outcome: 'duplicate', id: 'a' },
        ]);
        expect(Buffer.from((await mustGet(store, queue, 'a')).payload)).toEqual(bytes);
        expect(await total(queue)).toBe(1);
      });

      it('replace keeps everything else of the first: options, place in line, group', async () => {
        const queue = newQueue();
        await joined(queue);
        const spec = {
          reservation: 5_000,
          group: 'naïve;3',
          headers: { h: '1' },
          unique: { key: 'k;9', scope: 'waiting', ttl: 0, mode: 'replace' },
        } as const;
        await store.add(queue, [newJob('a', { spec, payload: '"old"' }), newJob('z', { spec: { group: 'naïve;3' } })]);
        const counts = await store.count(queue);
        await store.add(queue, [
          newJob('b', { spec: { ...spec, headers: { h: '2' }, reservation: 0 }, payload: '"new and longer"' }),
        ]);
        expect(await store.count(queue)).toEqual(counts);
        const [entry] = await claim(queue, 1);
        expect(entry!.job).toMatchObject({ id: 'a', payload: '"new and longer"', spec });
      });

      it('extend starts delay and time limit anew and leaves the payload', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [job('a', 'extend', { scope: 'window', ttl: 100 }, { delay: 50 })]);
        now += 40;
        expect(
          await store.add(queue, [job('b', 'extend', { scope: 'window', ttl: 100 }, { delay: 50, payload: '"b"' })]),
        ).toEqual([{ outcome: 'extended', id: 'a' }]);
        now += 45;
        expect(await claim(queue, 9)).toEqual([]);
        now += 5;
        expect((await claim(queue, 9)).map((entry) => entry.job!.payload)).toEqual(['"a"']);
        now += 49; // 139 after the first, 99 after the second
        expect(await store.add(queue, [job('c', 'keep', { scope: 'window', ttl: 100 })])).toEqual([
          { outcome: 'duplicate', id: 'a' },
        ]);
        now += 1;
        expect(await store.add(queue, [job('d', 'keep', { scope: 'window', ttl: 100 })])).toEqual([
          { outcome: 'created' },
        ]);
      });
    });

    it('a debounce frees the key of a former throttle, and does not put off what is due', async () => {
      const queue = newQueue();
      await joined(queue);
      const unique = { key: 'k', scope: 'window', ttl: 200 } as const;
      await store.add(queue, [newJob('a', { delay: 30, spec: { unique } })]);
      now += 40;
      const second = newJob('b', {
        delay: 60_000,
        spec: { unique: { key: 'k', scope: 'waiting', ttl: 0, mode: 'replace' } },
      });
      expect(await store.add(queue, [second])).toEqual([{ outcome: 'replaced', id: 'a' }]);
      await finishAll(queue, 1);
      expect((await mustGet(store, queue, 'a')).state).toBe('done');
      now += 200;
      expect(await store.add(queue, [newJob('c', { spec: { unique } })])).toEqual([{ outcome: 'created' }]);
    });

    describe('events', () => {
      const read = async (queue: string, after: string) =>
        (await store.events(queue, after, 100)).events.map(({ type, id, info }) => [type, id, info].join(' ').trim());

      it('are not written unless somebody asks', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a')]);
        await finishAll(queue, 1);
        expect((await store.events(queue, '0', 10)).events).toEqual([]);
      });

      it('tell the whole story of a job', async () => {
        const queue = newQueue();
        await joined(queue);
        const start = await store.record(queue, 60_000);
        const needs = (id: string) => ({ spec: { needs: [{ queue, id, on: 'success' as const }], group: 'g' } });
        await store.add(queue, [newJob('a'), newJob('b'), newJob('down', needs('b'))]);
        const [a, b] = await claim(queue, 2);
        await store.note(queue, a!.lease, { progress: '{"half":1}' });
        await store.settle(queue, [
          settlementOf(a!, fail(a!.job!, 'oops', { random: () => 0, delay: 10 })),
          settlementOf(b!, release(b!.job!)),
        ]);
        now += 10;
        const again = await claim(queue, 2);
        await store.settle(queue, [settlementOf(again[0]!, die(again[0]!.job!, 'no hope'))]);
        await store.settle(queue, [settlementOf(again[1]!, finish(again[1]!.job!))]);
        await store.revive(queue, ['b']);
        await store.cancel(queue, ['b']);
        expect(await read(queue, start)).toEqual([
          'added a',
          'added b',
          'added down',
          'started a 1',
          'started b 1',
          'progress a {"half":1}',
          'retry a oops',
          'released b',
          'started b 1',
          'started a 2',
          'dead b no hope',
          'cancelled down an upstream job ended dead: b',
          'done a',
          'revived b',
          'cancelled b cancelled',
        ]);
        const page = await store.events(queue, start, 2);
        expect(page.gap).toBe(false);
        expect((await read(queue, page.events[1]!.position))[0]).toBe('added down');
        expect(page.events[0]!.at).toBe(now - 10);
      });

      it('mark where nobody recorded, and where the position is not known any more', async () => {
        const queue = newQueue();
        const start = await store.record(queue, 1_000);
        await store.add(queue, [newJob('a')]);
        now += 1_000;
        await store.add(queue, [newJob('unseen')]);
        await store.record(queue, 1_000);
        await store.add(queue, [newJob('b')]);
        expect(await read(queue, start)).toEqual(['added a', 'gap', 'added b']);
        await store.obliterate(queue);
        await store.add(queue, [newJob('c')]);
        const after = await store.events(queue, start, 10);
        expect(after.gap).toBe(true);
        await store.obliterate(queue);
        expect(await store.record(queue, 5_000)).toMatch(/^\d/);
        expect(after.events.map(({ id }) => id)).toEqual(['c']);
      });
    });

    describe.skipIf(firesSchedules)('schedules', () => {
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

      it('does not fire ahead of its own clock', async () => {
        const queue = newQueue();
        const schedule = await store.putSchedule({
          name: `early ${queue}`,
          queue,
          definition: 'x',
          since: now,
          next: now + 60_000,
        });
        expect(await store.fire(schedule, { jobs: [newJob('a')], next: now + 120_000 })).toBe(false);
        expect(await total(queue)).toBe(0);
        await store.dropSchedule(`early ${queue}`);
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

      it('ends although an id stands in the line twice, once cancelled', async () => {
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

      it('repeats nothing where many share a time or a priority and the last one shown is gone', async () => {
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

      it('of ended jobs goes on among the older ones, whatever has ended since', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(
          queue,
          Array.from({ length: 6 }, (_x, i) => newJob(`old${i}`)),
        );
        for (let i = 0; i < 6; i++) {
          await finishAll(queue, 1);
          now += 10;
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
