import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STATES } from '../../dist/job/job.js';
import { FORGETFUL_SPEC } from '../../dist/job/spec.js';
import { die, fail, finish, lose, release, snooze } from '../../dist/job/transitions.js';
import type { Beat, Signal, Store } from '../../dist/store/store.js';
import { mustGet, names, newJob, settlementOf } from '../support/jobs.js';
import { until } from '../support/wait.js';
import { testRaw } from './raw.js';

export interface StoreUnderTest {
  name: string;
  open: (clock: () => number) => Promise<{ store: Store; close: () => Promise<void> }>;
  /** Why it has no raw tasks by hand, if it has none. */
  withoutRaw?: string;
  /** It reads schedules and fires them by itself: tests that bring unreadable ones are not for it. */
  firesSchedules?: boolean;
}

const LEASE = 10_000;
const SWEEP = { lease: LEASE, every: 0 };
const random = () => 0.5;

/** What every store has to do, told once. */
export function testStore({ name, open, withoutRaw }: StoreUnderTest): void {
  describe(`store contract: ${name}`, () => {
    let store: Store;
    let close: () => Promise<void>;
    let now = 1_800_000_000_000;
    let queues = 0;

    beforeAll(async () => {
      ({ store, close } = await open(() => now));
    }, 60_000);
    afterAll(() => close());

    const newQueue = () => `q${++queues}-${name}`;
    const session = (queue: string, worker = 'w1'): Beat => ({ queue, worker, lease: LEASE });
    const joined = async (queue: string, worker = 'w1') => {
      await store.join(queue, worker, { lease: LEASE, info: '{}' });
      return session(queue, worker);
    };
    const claim = async (queue: string, n: number, worker = 'w1') =>
      (await store.claim(session(queue, worker), n)).entries;
    /** Across a network a subscription stands when `reset` says so; elsewhere it stands at once. */
    const listening = async (queue: string, listener: (signal: Signal) => void) => {
      let stands = store.lanes === 1;
      const stop = store.listen(queue, (signal) => {
        if (signal.type === 'reset') stands = true;
        listener(signal);
      });
      await until('the subscription stands', () => stands);
      return stop;
    };
    const total = async (queue: string) => {
      const counts = await store.count(queue);
      return STATES.reduce((sum, state) => sum + counts[state], 0);
    };

    if (withoutRaw === undefined)
      testRaw({
        store: () => store,
        newQueue,
        pass: (ms) => {
          now += ms;
        },
      });

    describe('adding and claiming', () => {
      it('hands jobs out in the order they came, each once', async () => {
        const queue = newQueue();
        await joined(queue);
        expect(await store.add(queue, [newJob('a'), newJob('b'), newJob('c')])).toEqual(
          Array(3).fill({ outcome: 'created' }),
        );
        expect(names(await claim(queue, 2))).toEqual(['a', 'b']);
        expect(names(await claim(queue, 5))).toEqual(['c']);
        expect(names(await claim(queue, 5))).toEqual([]);
      });

      it('says whether more is waiting', async () => {
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
        expect(entry!.job).toMatchObject({ id: 'a', payload: '"a"', attempt: 1, createdAt: now });
      });

      it('accepts an id once while its record is known', async () => {
        const queue = newQueue();
        await store.add(queue, [newJob('a')]);
        expect(await store.add(queue, [newJob('a'), newJob('b'), newJob('b')])).toEqual([
          { outcome: 'duplicate', id: 'a' },
          { outcome: 'created' },
          { outcome: 'duplicate', id: 'b' },
        ]);
        expect((await store.count(queue)).ready).toBe(2);
      });

      it('serves higher priorities first and each priority in order', async () => {
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

      it('keeps payloads byte for byte', async () => {
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

      it('keeps names apart whatever characters they hold', async () => {
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

      it('hands out nothing while paused', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a')]);
        expect(await store.isPaused(queue)).toBe(false);
        await store.pause(queue, true);
        expect(await store.isPaused(queue)).toBe(true);
        expect(await store.claim(session(queue), 1)).toMatchObject({ status: 'paused', entries: [] });
        await store.pause(queue, false);
        expect(await store.isPaused(queue)).toBe(false);
        expect(names(await claim(queue, 1))).toEqual(['a']);
      });

      it('refuses what is beyond the limits in count and bytes', async () => {
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

    describe('carrying', () => {
      const mark = (from: string, to: string, source = 's') => ({ source, from, to });
      const ids = async (queue: string) =>
        (await store.list(queue, { state: 'ready', limit: 50 })).jobs.map(({ id }) => id);

      it('adds in order and moves its source, if that stands where it should', async () => {
        const queue = newQueue();
        expect(await store.carried(queue, 's')).toBe('');
        expect(await store.carry(queue, [newJob('a'), newJob('b')], mark('', '2'))).toEqual([
          { outcome: 'created' },
          { outcome: 'created' },
        ]);
        expect(await store.carry(queue, [newJob('c')], mark('2', '3'))).toEqual([{ outcome: 'created' }]);
        expect(await store.carried(queue, 's')).toBe('3');
        expect(await ids(queue)).toEqual(['a', 'b', 'c']);
      });

      it('changes nothing when it stands elsewhere, also when the jobs are long forgotten', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.carry(queue, [newJob('a', { spec: FORGETFUL_SPEC })], mark('', '1'));
        const [entry] = await claim(queue, 1);
        await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))]);
        expect(await store.get(queue, ['a'])).toEqual([undefined]);
        expect(await store.carry(queue, [newJob('a')], mark('', '1'))).toBe('stale');
        expect(await store.carry(queue, [newJob('b')], mark('2', '3'))).toBe('stale');
        expect(await store.carried(queue, 's')).toBe('1');
        expect((await store.count(queue)).ready).toBe(0);
      });

      it('keeps sources and queues apart, and remembers them when the queue is obliterated', async () => {
        const [one, two] = [newQueue(), newQueue()];
        await store.carry(one, [newJob('a')], mark('', '1'));
        await store.carry(one, [newJob('b')], mark('', '7', 'other'));
        await store.carry(two, [newJob('c')], mark('', '9'));
        await store.obliterate(one);
        expect(await store.carried(one, 's')).toBe('1');
        expect(await store.carried(one, 'other')).toBe('7');
        expect(await store.carried(two, 's')).toBe('9');
        expect(await store.carry(one, [newJob('d')], mark('1', '2'))).toEqual([{ outcome: 'created' }]);
      });

      it('does not move its source when the jobs are refused', async () => {
        const queue = newQueue();
        const needy = newJob('a', { spec: { needs: [{ queue, id: 'nobody', on: 'success' }] } });
        await expect(store.carry(queue, [newJob('b'), needy], mark('', '2'))).rejects.toMatchObject({
          code: 'UNKNOWN_UPSTREAM',
        });
        expect(await store.carried(queue, 's')).toBe('');
        expect(await store.carry(queue, [newJob('b')], mark('', '1'))).toEqual([{ outcome: 'created' }]);
        expect(await store.carry(queue, [newJob('b')], mark('1', '2'))).toEqual([{ outcome: 'duplicate', id: 'b' }]);
      });

      it('lets one of many win', async () => {
        const queue = newQueue();
        const tries = Array.from({ length: 20 }, (_x, i) => store.carry(queue, [newJob(`j${i}`)], mark('', '1')));
        expect((await Promise.all(tries)).filter((answer) => answer !== 'stale')).toHaveLength(1);
        expect((await store.count(queue)).ready).toBe(1);
      });
    });

    describe('raw tasks', () => {
      it('hands out the very bytes, first in first out', async () => {
        const queue = newQueue();
        await joined(queue);
        const all = Buffer.from(Uint8Array.from({ length: 256 }, (_x, i) => i));
        await store.push(queue, [Buffer.from('one'), all]);
        const entries = await claim(queue, 5);
        expect(Buffer.from(entries[0]!.task!).toString()).toBe('one');
        expect(Buffer.from(entries[1]!.task!)).toEqual(all);
        expect(entries[0]!.job).toBeUndefined();
      });

      it('takes turns with jobs of default priority', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.push(
          queue,
          ['t1', 't2', 't3', 't4'].map((text) => Buffer.from(text)),
        );
        await store.add(queue, [
          newJob('j1'),
          newJob('j2'),
          newJob('up', { priority: 1 }),
          newJob('down', { priority: -1 }),
        ]);
        const all = names(await claim(queue, 5));
        expect(all[0]).toBe('up');
        expect(new Set(all.slice(1))).toEqual(new Set(['t1', 't2', 'j1', 'j2']));
        expect(names(await claim(queue, 5))).toEqual(['t3', 't4', 'down']);
      });

      it('serves both kinds when claiming one by one', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.push(
          queue,
          ['t1', 't2'].map((text) => Buffer.from(text)),
        );
        await store.add(queue, [newJob('j1'), newJob('j2')]);
        const firstTwo = [...names(await claim(queue, 1)), ...names(await claim(queue, 1))];
        expect(firstTwo.sort()).toEqual(['j1', 't1']);
      });

      it('is gone when done and back at the front when released', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.push(
          queue,
          ['t1', 't2', 't3'].map((text) => Buffer.from(text)),
        );
        const [one, two] = await claim(queue, 2);
        const counts = { attempt: 1, crashes: 0 };
        expect(
          await store.settle(queue, [
            settlementOf(one!, { to: 'done', ...counts }),
            settlementOf(two!, { to: 'ready', ...counts }),
          ]),
        ).toEqual([true, true]);
        expect(await total(queue)).toBe(2);
        expect(names(await claim(queue, 5))).toEqual(['t2', 't3']);
      });

      it('becomes a job with a record when it fails', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.push(queue, [Buffer.from([0, 255, 10])]);
        const [entry] = await claim(queue, 1);
        const record = newJob('born', { payload: entry!.task! });
        const move = fail({ attempt: 1, crashes: 0, spec: record.spec }, 'boom', { random, delay: 500 });
        expect(await store.settle(queue, [settlementOf(entry!, move, record)])).toEqual([true]);
        const job = await mustGet(store, queue, 'born');
        expect(job).toMatchObject({ state: 'scheduled', attempt: 1, error: 'boom', runAt: now + 500 });
        expect(Buffer.from(job.payload as Uint8Array)).toEqual(Buffer.from([0, 255, 10]));
        expect(await total(queue)).toBe(1);
      });
    });

    describe('settling', () => {
      it('keeps a done job with its result for as long as asked', async () => {
        const queue = newQueue();
        await joined(queue);
        const spec = { keep: { done: { ms: 1_000, count: 10 }, dead: { ms: 1_000, count: 10 } } };
        await store.add(queue, [newJob('a', { spec }), newJob('b', { spec }), newJob('c', { spec })]);
        const [a, b, c] = await claim(queue, 3);
        const bytes = Uint8Array.from([1, 0, 2]);
        await store.settle(queue, [
          settlementOf(a!, finish(a!.job!, '{"x":1}')),
          settlementOf(b!, finish(b!.job!, bytes)),
          settlementOf(c!, finish(c!.job!)),
        ]);
        expect(await mustGet(store, queue, 'a')).toMatchObject({
          state: 'done',
          result: '{"x":1}',
          finishedAt: now,
          attempt: 1,
        });
        expect(Buffer.from((await mustGet(store, queue, 'b')).result as Uint8Array)).toEqual(Buffer.from(bytes));
        expect((await mustGet(store, queue, 'c')).result).toBeUndefined();
        now += 999;
        await store.sweep(queue, SWEEP);
        expect((await store.count(queue)).done).toBe(3);
        now += 1;
        await store.sweep(queue, SWEEP);
        expect(await total(queue)).toBe(0);
        expect(await store.get(queue, ['a'])).toEqual([undefined]);
      });

      it('keeps no more ended jobs than asked, the newest', async () => {
        const queue = newQueue();
        await joined(queue);
        const spec = { keep: { done: { ms: 60_000, count: 2 }, dead: { ms: 60_000, count: 1 } } };
        for (const id of ['a', 'b', 'c']) {
          await store.add(queue, [newJob(id, { spec })]);
          const [entry] = await claim(queue, 1);
          await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))]);
          now += 1;
        }
        expect((await store.list(queue, { state: 'done', limit: 10 })).jobs.map((job) => job.id)).toEqual(['c', 'b']);
        expect(await store.get(queue, ['a'])).toEqual([undefined]);
      });

      it('forgets a done job at once when nothing is to be kept', async () => {
        const queue = newQueue();
        await joined(queue);
        const spec = { keep: { done: { ms: 0, count: 0 }, dead: { ms: 0, count: 0 } } };
        await store.add(queue, [newJob('a', { spec })]);
        const [entry] = await claim(queue, 1);
        await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))]);
        expect(await total(queue)).toBe(0);
        expect((await store.add(queue, [newJob('a')]))[0]!.outcome).toBe('created');
      });

      it('forgets a whole batch of forgetful jobs, and only those whose token holds', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(
          queue,
          ['a', 'b', 'c', 'd'].map((id) => newJob(id, { spec: FORGETFUL_SPEC })),
        );
        const [a, b, c, d] = await claim(queue, 4);
        await store.note(queue, b!.lease, { progress: '1' });
        const done = (entry: typeof a) => settlementOf(entry!, finish(entry!.job!));
        expect(a!.job!.spec).toBe(FORGETFUL_SPEC);
        expect(await store.settle(queue, [done(a), done(a), done(c)])).toEqual([true, false, true]);
        expect(await store.count(queue)).toMatchObject({ active: 2, done: 0 });
        expect((await mustGet(store, queue, 'b')).state).toBe('active');
        expect(await store.settle(queue, [done(b), done(d)])).toEqual([true, true]);
        expect(await total(queue)).toBe(0);
        expect(await store.get(queue, ['a', 'b', 'c', 'd'])).toEqual(Array(4).fill(undefined));
      });

      it('takes no other record along when a job that is not kept ends', async () => {
        const queue = newQueue();
        await joined(queue);
        const nothing = { done: { ms: 0, count: 0 }, dead: { ms: 0, count: 0 } };
        await store.add(queue, [newJob('kept'), newJob('died'), newJob('gone', { spec: { keep: nothing } })]);
        await store.add(queue, [newJob('gone too', { spec: { keep: nothing } })]);
        const [kept, died, gone, goneToo] = await claim(queue, 4);
        await store.settle(queue, [
          settlementOf(kept!, finish(kept!.job!, '1')),
          settlementOf(died!, die(died!.job!, 'x')),
          settlementOf(gone!, finish(gone!.job!, '2')),
          settlementOf(goneToo!, die(goneToo!.job!, 'x')),
        ]);
        expect(await store.count(queue)).toMatchObject({ done: 1, dead: 1 });
        expect((await mustGet(store, queue, 'kept')).result).toBe('1');
        expect((await mustGet(store, queue, 'died')).state).toBe('dead');
      });

      it('lets a failed job wait, then join the back, then die', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a', { spec: { attempts: 2 } }), newJob('b')]);
        const [a] = await claim(queue, 1);
        await store.settle(queue, [settlementOf(a!, fail(a!.job!, 'first', { random, delay: 50 }))]);
        expect(await mustGet(store, queue, 'a')).toMatchObject({
          state: 'scheduled',
          runAt: now + 50,
          attempt: 1,
          error: 'first',
        });
        now += 49;
        expect((await store.claim(session(queue), 0 + 1)).nextAt).toBe(now + 1);
        await store.add(queue, [newJob('c')]);
        now += 1;
        const rest = await claim(queue, 5);
        expect(names(rest)).toEqual(['c', 'a']);
        const again = rest.find((entry) => entry.job?.id === 'a')!;
        expect(again.job!.attempt).toBe(2);
        await store.settle(queue, [settlementOf(again, fail(again.job!, 'second', { random }))]);
        expect(await mustGet(store, queue, 'a')).toMatchObject({ state: 'dead', attempt: 2, error: 'second' });
        expect((await store.count(queue)).dead).toBe(1);
      });

      it('returns released jobs to the front in their order, whatever the order of the reports', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(
          queue,
          ['a', 'b', 'c', 'd'].map((id) => newJob(id)),
        );
        const entries = await claim(queue, 3);
        const shuffled = [entries[1]!, entries[2]!, entries[0]!];
        await store.settle(
          queue,
          shuffled.map((entry) => settlementOf(entry, release(entry.job!))),
        );
        expect(await mustGet(store, queue, 'a')).toMatchObject({ state: 'ready', attempt: 0 });
        expect(names(await claim(queue, 4))).toEqual(['a', 'b', 'c', 'd']);
      });

      it('returns a released job to the front of its own priority', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('p1', { priority: 3 }), newJob('p2', { priority: 3 }), newJob('n')]);
        const [p1] = await claim(queue, 1);
        await store.settle(queue, [settlementOf(p1!, release(p1!.job!))]);
        expect(names(await claim(queue, 3))).toEqual(['p1', 'p2', 'n']);
      });

      it('gives back the attempt of a snoozed job', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a')]);
        const [entry] = await claim(queue, 1);
        await store.settle(queue, [settlementOf(entry!, snooze(entry!.job!, 1_000))]);
        expect(await mustGet(store, queue, 'a')).toMatchObject({ state: 'scheduled', attempt: 0, runAt: now + 1_000 });
      });

      it('refuses a token that is stale, used, or of another job', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a'), newJob('b')]);
        const [a, b] = await claim(queue, 2);
        const done = (entry: typeof a) => settlementOf(entry!, finish(entry!.job!));
        const forged = { ...done(a), lease: { ...a!.lease, token: b!.lease.token } };
        expect(await store.settle(queue, [forged])).toEqual([false]);
        expect(await store.settle(queue, [settlementOf(a!, release(a!.job!))])).toEqual([true]);
        const [again] = await claim(queue, 1);
        expect(await store.settle(queue, [done(a), settlementOf(a!, release(a!.job!))])).toEqual([false, false]);
        expect(await store.settle(queue, [done(a)])).toEqual([false]);
        expect((await mustGet(store, queue, 'a')).state).toBe('active');
        expect(await store.settle(queue, [done(again), done(again)])).toEqual([true, false]);
        expect(await store.settle(queue, [done(b), done(a)])).toEqual([true, false]);
        expect((await store.count(queue)).done).toBe(2);
      });

      it('notes progress and log lines of the holder only', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a')]);
        const [entry] = await claim(queue, 1);
        expect(await store.note(queue, entry!.lease, { progress: '50', log: 'half\n' })).toBe(true);
        expect(await store.note(queue, entry!.lease, { log: 'more\n' })).toBe(true);
        expect(await mustGet(store, queue, 'a')).toMatchObject({ progress: '50', log: 'half\nmore\n' });
        await store.settle(queue, [settlementOf(entry!, release(entry!.job!))]);
        expect(await store.note(queue, entry!.lease, { progress: '60' })).toBe(false);
        expect((await mustGet(store, queue, 'a')).progress).toBe('50');
      });
    });

    describe('time', () => {
      it('runs nothing before its time and promotes in order of time', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [
          newJob('later', { delay: 200 }),
          newJob('sooner', { at: now + 100 }),
          newJob('past', { at: now - 5 }),
        ]);
        const first = await store.claim(session(queue), 5);
        expect(names(first.entries)).toEqual(['past']);
        expect(first.nextAt).toBe(now + 100);
        now += 99;
        expect(names(await claim(queue, 5))).toEqual([]);
        now += 101;
        expect(names(await claim(queue, 5))).toEqual(['sooner', 'later']);
      });

      it('keeps the priority of a delayed job', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('n'), newJob('p', { delay: 10, priority: 2 })]);
        now += 10;
        expect(names(await claim(queue, 5))).toEqual(['p', 'n']);
      });
    });

    describe('unique keys', () => {
      const unique = (key: string, scope: 'waiting' | 'alive' | 'window', ttl = 0) => ({
        spec: { unique: { key, scope, ttl } },
      });

      it('holds an alive key until the job ends', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a', unique('k', 'alive'))]);
        expect(await store.add(queue, [newJob('b', unique('k', 'alive'))])).toEqual([
          { outcome: 'duplicate', id: 'a' },
        ]);
        const [entry] = await claim(queue, 1);
        expect(await store.add(queue, [newJob('b', unique('k', 'alive'))])).toEqual([
          { outcome: 'duplicate', id: 'a' },
        ]);
        await store.settle(queue, [settlementOf(entry!, fail(entry!.job!, 'x', { random, delay: 5 }))]);
        expect((await store.add(queue, [newJob('b', unique('k', 'alive'))]))[0]!.outcome).toBe('duplicate');
        now += 5;
        const [again] = await claim(queue, 1);
        await store.settle(queue, [settlementOf(again!, die(again!.job!, 'x'))]);
        expect((await store.add(queue, [newJob('b', unique('k', 'alive'))]))[0]!.outcome).toBe('created');
      });

      it('frees a waiting key when the job is claimed', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a', { ...unique('ключ', 'waiting') })]);
        expect((await store.add(queue, [newJob('b', unique('ключ', 'waiting'))]))[0]!.outcome).toBe('duplicate');
        await claim(queue, 1);
        expect((await store.add(queue, [newJob('b', unique('ключ', 'waiting'))]))[0]!.outcome).toBe('created');
      });

      it('holds a window key for its time, whatever becomes of the job', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a', unique('k', 'window', 1_000))]);
        const [entry] = await claim(queue, 1);
        await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))]);
        expect((await store.add(queue, [newJob('b', unique('k', 'window', 1_000))]))[0]!.outcome).toBe('duplicate');
        now += 1_000;
        expect((await store.add(queue, [newJob('b', unique('k', 'window', 1_000))]))[0]!.outcome).toBe('created');
      });

      it('frees the key of a cancelled job', async () => {
        const queue = newQueue();
        await store.add(queue, [newJob('a', unique('k', 'alive'))]);
        await store.cancel(queue, ['a']);
        expect((await store.add(queue, [newJob('b', unique('k', 'alive'))]))[0]!.outcome).toBe('created');
      });
    });

    describe('workers', () => {
      it('returns the work of a dead worker to the front, in order, once', async () => {
        const queue = newQueue();
        await joined(queue, 'dead');
        await joined(queue, 'alive');
        await store.sweep(queue, SWEEP);
        await store.add(
          queue,
          ['a', 'b', 'c', 'd'].map((id) => newJob(id)),
        );
        await claim(queue, 2, 'dead');
        const [mine] = await claim(queue, 1, 'alive');
        now += LEASE - 1;
        expect(await store.beat([session(queue, 'alive')])).toEqual([true]);
        expect((await store.sweep(queue, SWEEP)).lost).toEqual([]);
        now += 1;
        const { lost } = await store.sweep(queue, SWEEP);
        expect(names(lost)).toEqual(['b', 'a']);
        const back = () =>
          store.settle(
            queue,
            lost.map((entry) => settlementOf(entry, lose(entry.job!, 3, entry.lease.worker))),
          );
        expect(await back()).toEqual([true, true]);
        expect(await back()).toEqual([false, false]);
        expect(await mustGet(store, queue, 'a')).toMatchObject({ state: 'ready', attempt: 0, crashes: 1 });
        expect(names(await claim(queue, 9, 'alive'))).toEqual(['a', 'b', 'd']);
        expect(await store.settle(queue, [settlementOf(mine!, finish(mine!.job!))])).toEqual([true]);
        await store.sweep(queue, SWEEP);
        expect((await store.workers(queue)).map((worker) => worker.id)).toEqual(['alive']);
        expect(await store.beat([session(queue, 'dead')])).toEqual([false]);
      });

      it('does not let a worker that was declared dead come back', async () => {
        const queue = newQueue();
        await joined(queue, 'late');
        await store.sweep(queue, SWEEP);
        await store.add(queue, [newJob('a'), newJob('b')]);
        await claim(queue, 1, 'late');
        now += LEASE;
        const { lost } = await store.sweep(queue, SWEEP);
        expect(names(lost)).toEqual(['a']);
        expect(await store.beat([session(queue, 'late')])).toEqual([false]);
        expect(await store.claim(session(queue, 'late'), 1)).toMatchObject({ status: 'lost', entries: [] });
        await store.settle(
          queue,
          lost.map((entry) => settlementOf(entry, lose(entry.job!, 3, 'late'))),
        );
        await store.sweep(queue, SWEEP);
        expect(await store.workers(queue)).toEqual([]);
      });

      it('returns raw tasks of a dead worker too', async () => {
        const queue = newQueue();
        await joined(queue, 'dead');
        await store.sweep(queue, SWEEP);
        await store.push(
          queue,
          ['t1', 't2', 't3'].map((text) => Buffer.from(text)),
        );
        await claim(queue, 2, 'dead');
        now += LEASE;
        const { lost } = await store.sweep(queue, SWEEP);
        expect(names(lost)).toEqual(['t2', 't1']);
        await store.settle(
          queue,
          lost.map((entry) => settlementOf(entry, { to: 'ready', attempt: 0, crashes: 0 })),
        );
        await joined(queue, 'w1');
        expect(names(await claim(queue, 5))).toEqual(['t1', 't2', 't3']);
      });

      it('only grants time when nobody has swept for a whole lease', async () => {
        const queue = newQueue();
        await joined(queue, 'w1');
        await store.add(queue, [newJob('a'), newJob('r', { spec: { reservation: 100 } })]);
        await claim(queue, 2);
        await store.sweep(queue, SWEEP);
        now += LEASE + 1;
        expect((await store.sweep(queue, SWEEP)).lost).toEqual([]);
        expect(await store.beat([session(queue)])).toEqual([true]);
        now += LEASE;
        expect(names((await store.sweep(queue, SWEEP)).lost).sort()).toEqual(['a', 'r', 'r']);
      });

      it('leaves a queue alone that was just swept', async () => {
        const queue = newQueue();
        await store.add(queue, [newJob('a', { delay: 10 })]);
        await store.sweep(queue, SWEEP);
        now += 10;
        await store.sweep(queue, { lease: LEASE, every: 500 });
        expect((await store.count(queue)).scheduled).toBe(1);
        await store.sweep(queue, SWEEP);
        expect((await store.count(queue)).ready).toBe(1);
      });

      it('tells which reservations have ended', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [
          newJob('a', { spec: { reservation: 300 } }),
          newJob('b', { spec: { reservation: 900 } }),
          newJob('c'),
        ]);
        await store.sweep(queue, SWEEP);
        const [a] = await claim(queue, 3);
        now += 300;
        const { lost } = await store.sweep(queue, SWEEP);
        expect(lost.map((entry) => [entry.job!.id, entry.why])).toEqual([['a', 'reservation']]);
        expect(lost[0]!.lease).toEqual(a!.lease);
        await store.settle(queue, [settlementOf(a!, finish(a!.job!))]);
        now += 300;
        expect((await store.sweep(queue, SWEEP)).lost).toEqual([]);
      });

      it('tells what a worker holds and who is there', async () => {
        const queue = newQueue();
        await store.join(queue, 'w1', { lease: LEASE, info: '{"pid":1}' });
        await store.add(queue, [newJob('a'), newJob('b')]);
        await store.push(queue, [Buffer.from('t')]);
        const entries = await claim(queue, 3);
        const held = await store.held(queue, 'w1');
        expect(new Set(held.map((lease) => lease.token))).toEqual(new Set(entries.map((entry) => entry.lease.token)));
        expect(await store.workers(queue)).toEqual([{ id: 'w1', deadline: now + LEASE, holds: 3, info: '{"pid":1}' }]);
        await store.leave(queue, 'w1');
        expect(await store.workers(queue)).toHaveLength(1);
        await store.settle(
          queue,
          entries.map((entry) => settlementOf(entry, { to: 'ready', attempt: 0, crashes: 0 })),
        );
        await store.leave(queue, 'w1');
        expect(await store.workers(queue)).toEqual([]);
      });
    });

    describe('cancelling and reviving', () => {
      it('cancels a job in any state that has not ended', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [
          newJob('active'),
          newJob('ready'),
          newJob('later', { delay: 50 }),
          newJob('prio', { priority: -4 }),
        ]);
        await store.add(queue, [newJob('blocked', { spec: { needs: [{ queue, id: 'ready', on: 'finished' }] } })]);
        const [active] = await claim(queue, 1);
        const ids = ['active', 'later', 'prio', 'blocked', 'unknown'];
        expect(await store.cancel(queue, ids)).toEqual([true, true, true, true, false]);
        expect(await store.cancel(queue, ['active'])).toEqual([false]);
        expect(await store.settle(queue, [settlementOf(active!, finish(active!.job!))])).toEqual([false]);
        expect(await mustGet(store, queue, 'active')).toMatchObject({
          state: 'cancelled',
          attempt: 1,
          finishedAt: now,
        });
        now += 100;
        expect(names(await claim(queue, 9))).toEqual(['ready']);
        expect(await store.count(queue)).toMatchObject({ cancelled: 4, active: 1, ready: 0, scheduled: 0, blocked: 0 });
      });

      it('skips a job cancelled while it waited, also when its id comes again', async () => {
        const queue = newQueue();
        await joined(queue);
        const spec = { keep: { done: { ms: 0, count: 0 }, dead: { ms: 0, count: 0 } } };
        await store.add(queue, [newJob('a', { spec }), newJob('b'), newJob('c')]);
        expect(await store.cancel(queue, ['a', 'b'])).toEqual([true, true]);
        expect((await store.count(queue)).ready).toBe(1);
        await store.add(queue, [newJob('a')]);
        expect((await store.list(queue, { state: 'ready', limit: 10 })).jobs.map((job) => job.id)).toContain('c');
        const seen = [
          ...names(await claim(queue, 2)),
          ...names(await claim(queue, 2)),
          ...names(await claim(queue, 2)),
        ];
        expect(seen).toEqual(['c', 'a']);
      });

      it('tells the holder of a cancelled job', async () => {
        const queue = newQueue();
        await joined(queue);
        const heard: string[] = [];
        const stop = await listening(queue, (signal) => {
          if (signal.type === 'cancelled') heard.push(signal.token);
        });
        await store.add(queue, [newJob('a')]);
        const [entry] = await claim(queue, 1);
        await store.cancel(queue, ['a']);
        await until('the cancellation is told', () => heard.length > 0);
        stop();
        expect(heard).toEqual([entry!.lease.token]);
      });

      it('revives dead jobs only, with fresh counts, at the back', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a'), newJob('p', { priority: 5 }), newJob('b')]);
        const [p, a] = await claim(queue, 2);
        await store.settle(
          queue,
          [a!, p!].map((entry) => settlementOf(entry, die(entry.job!, 'no'))),
        );
        expect(await store.revive(queue, ['a', 'b', 'x', 'p'])).toEqual([true, false, false, true]);
        expect(await mustGet(store, queue, 'a')).toMatchObject({ state: 'ready', attempt: 0, crashes: 0, priority: 0 });
        expect(names(await claim(queue, 3))).toEqual(['p', 'b', 'a']);
      });

      it('forgets everything when obliterated, and goes on afterwards', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a'), newJob('b', { delay: 5 }), newJob('p', { priority: 2 })]);
        await store.push(queue, [Buffer.from('t')]);
        const entries = await claim(queue, 2);
        await store.obliterate(queue);
        expect(await total(queue)).toBe(0);
        expect(
          await store.settle(
            queue,
            entries.map((entry) => settlementOf(entry, { to: 'ready', attempt: 0, crashes: 0 })),
          ),
        ).toEqual([false, false]);
        await store.add(queue, [newJob('a')]);
        expect(names(await claim(queue, 5))).toEqual(['a']);
      });
    });

    describe('dependencies', () => {
      const needs = (...ups: { queue: string; id: string; on?: 'success' | 'finished' }[]) => ({
        spec: { needs: ups.map((up) => ({ on: 'success' as const, ...up })) },
      });
      const end = async (queue: string, how: 'done' | 'dead') => {
        const [entry] = await claim(queue, 1);
        const move = how === 'done' ? finish(entry!.job!) : die(entry!.job!, 'no');
        expect(await store.settle(queue, [settlementOf(entry!, move)])).toEqual([true]);
        return entry!.job!.id;
      };
      /** Across slots the news travels after the settle: wait until it has arrived. */
      const arrives = async (queue: string, id: string, state: string) => {
        for (let i = 0; i < 300; i++) {
          if ((await mustGet(store, queue, id)).state === state) return;
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
        expect((await mustGet(store, queue, id)).state).toBe(state);
      };

      it('blocks a job until all its upstreams are done', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a'), newJob('b'), newJob('c', needs({ queue, id: 'a' }, { queue, id: 'b' }))]);
        expect((await mustGet(store, queue, 'c')).state).toBe('blocked');
        await end(queue, 'done');
        expect((await store.count(queue)).blocked).toBe(1);
        await end(queue, 'done');
        expect(names(await claim(queue, 5))).toEqual(['c']);
      });

      it('works across queues', async () => {
        const [up, down] = [newQueue(), newQueue()];
        await joined(up);
        await joined(down);
        await store.add(up, [newJob('u1'), newJob('u2')]);
        await store.add(down, [newJob('d', needs({ queue: up, id: 'u1' }, { queue: up, id: 'u2' }))]);
        await end(up, 'done');
        expect((await mustGet(store, down, 'd')).state).toBe('blocked');
        await end(up, 'done');
        await arrives(down, 'd', 'ready');
        expect(names(await claim(down, 5))).toEqual(['d']);
      });

      it('hears of an upstream in another queue that was forgotten when done, also when swept meanwhile', async () => {
        const [up, down] = [newQueue(), newQueue()];
        await joined(up);
        await store.add(up, [newJob('u', { spec: FORGETFUL_SPEC })]);
        await store.add(down, [newJob('d', needs({ queue: up, id: 'u' }))]);
        const [entry] = await claim(up, 1);
        const settling = store.settle(up, [settlementOf(entry!, finish(entry!.job!))]);
        await Promise.all([settling, store.sweep(down, SWEEP), store.sweep(down, SWEEP)]);
        await arrives(down, 'd', 'ready');
      });

      it('waits again when the id of a cancelled dependent comes again', async () => {
        const queue = newQueue();
        const spec = { needs: [{ queue, id: 'a', on: 'success' as const }], keep: FORGETFUL_SPEC.keep };
        await store.add(queue, [newJob('a'), newJob('b', { spec })]);
        await store.cancel(queue, ['b']);
        await store.add(queue, [newJob('b', { spec })]);
        expect((await mustGet(store, queue, 'b')).state).toBe('blocked');
      });

      it('cancels what needs success and runs what needs an end, along the whole chain', async () => {
        const [queue, other] = [newQueue(), newQueue()];
        await joined(queue);
        await store.add(queue, [
          newJob('a'),
          newJob('b', needs({ queue, id: 'a' })),
          newJob('c', needs({ queue, id: 'b' })),
        ]);
        await store.add(queue, [newJob('always', needs({ queue, id: 'c', on: 'finished' }))]);
        await store.add(other, [newJob('far', needs({ queue, id: 'c' }))]);
        await end(queue, 'dead');
        await arrives(other, 'far', 'cancelled');
        expect(await mustGet(store, queue, 'b')).toMatchObject({
          state: 'cancelled',
          error: expect.stringContaining('a'),
        });
        expect((await mustGet(store, queue, 'c')).state).toBe('cancelled');
        expect(names(await claim(queue, 5))).toEqual(['always']);
      });

      it('tells dependents nothing when a stale report comes with others', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a'), newJob('b', needs({ queue, id: 'a' }))]);
        const [a] = await claim(queue, 1);
        await store.settle(queue, [settlementOf(a!, release(a!.job!))]);
        const stale = [finish(a!.job!), fail(a!.job!, 'x', { random })].map((move) => settlementOf(a!, move));
        expect(await store.settle(queue, stale)).toEqual([false, false]);
        expect(await store.count(queue)).toMatchObject({ blocked: 1, ready: 1 });
      });

      it('tells dependents of a cancelled upstream', async () => {
        const queue = newQueue();
        await store.add(queue, [newJob('a'), newJob('b', needs({ queue, id: 'a' }))]);
        await store.cancel(queue, ['a']);
        expect((await mustGet(store, queue, 'b')).state).toBe('cancelled');
      });

      it('looks at upstreams that have already ended', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('good'), newJob('bad')]);
        await end(queue, 'done');
        await end(queue, 'dead');
        await store.add(queue, [
          newJob('runs', needs({ queue, id: 'good' })),
          newJob('skipped', needs({ queue, id: 'good' }, { queue, id: 'bad' })),
          newJob('also', needs({ queue, id: 'bad', on: 'finished' })),
        ]);
        expect((await mustGet(store, queue, 'skipped')).state).toBe('cancelled');
        expect(names(await claim(queue, 5))).toEqual(['runs', 'also']);
      });

      it('refuses an unknown upstream and changes nothing', async () => {
        const [queue, other] = [newQueue(), newQueue()];
        await store.add(queue, [newJob('a')]);
        const adding = store.add(queue, [newJob('b'), newJob('c', needs({ queue, id: 'nope' }))]);
        await expect(adding).rejects.toMatchObject({
          code: 'UNKNOWN_UPSTREAM',
          message: expect.stringContaining('nope'),
        });
        await expect(store.add(other, [newJob('d', needs({ queue, id: 'gone' }))])).rejects.toMatchObject({
          code: 'UNKNOWN_UPSTREAM',
        });
        expect(await store.count(queue)).toMatchObject({ ready: 1, blocked: 0 });
        expect(await total(other)).toBe(0);
      });

      it('keeps the delay of a job whose upstreams end early', async () => {
        const queue = newQueue();
        await joined(queue);
        await store.add(queue, [newJob('a'), newJob('b', { delay: 500, ...needs({ queue, id: 'a' }) })]);
        await end(queue, 'done');
        expect(await mustGet(store, queue, 'b')).toMatchObject({ state: 'scheduled', runAt: now + 500 });
      });

      it('releases thousands of dependents of one job', async () => {
        const [queue, other] = [newQueue(), newQueue()];
        await joined(queue);
        await store.add(queue, [newJob('hub')]);
        const fan = (at: string) =>
          Array.from({ length: 900 }, (_x, i) => newJob(`${at}${i}`, needs({ queue, id: 'hub' })));
        await store.add(queue, fan('x'));
        await store.add(queue, fan('y'));
        await store.add(other, fan('z'));
        await end(queue, 'done');
        for (let i = 0; i < 500; i++) {
          if ((await store.count(queue)).blocked + (await store.count(other)).blocked === 0) break;
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
        expect((await store.count(queue)).ready).toBe(1_800);
        expect((await store.count(other)).ready).toBe(900);
      });
    });

    describe('looking', () => {
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
        expect((await walk('active', 2)).sort()).toEqual(['hi', 'n0', 'n1', 'n2']);
        await store.settle(
          queue,
          entries.map((entry) => settlementOf(entry, die(entry.job!, 'x'))),
        );
        expect((await walk('dead', 3)).sort()).toEqual(['hi', 'n0', 'n1', 'n2']);
        expect(await walk('blocked', 3)).toEqual([]);
      });

      it('counts nothing in a queue nobody has used', async () => {
        expect(await total('never-used')).toBe(0);
        expect(await store.get('never-used', ['a'])).toEqual([undefined]);
        expect(await store.list('never-used', { state: 'ready', limit: 5 })).toEqual({ jobs: [], cursor: undefined });
      });

      it('tells of new work and of awaited ends', async () => {
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
        await store.await(queue, ['a']);
        await store.settle(queue, [settlementOf(entry!, finish(entry!.job!))]);
        await until('the end is told', () => heard.includes('finished a') && heard.includes('work'));
        stop();
        expect(heard).toContain('work');
        expect(heard).toContain('finished a');
      });
    });
  });
}
