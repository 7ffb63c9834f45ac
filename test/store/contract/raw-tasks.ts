import { describe, expect, it } from 'vitest';
import { sweepQueue } from '../../../dist/engine/sweeper.js';
import { DEFAULT_SPEC } from '../../../dist/job/spec.js';
import { finish, release } from '../../../dist/job/transitions.js';
import type { TaskEvent } from '../../../dist/store/raw-store.js';
import type { Settlement } from '../../../dist/store/store.js';
import { names, newJob, settlementOf } from '../../support/jobs.js';
import { until } from '../../support/wait.js';
import { type Bench, LEASE } from './setup.js';

const CARE = { lease: LEASE, sweep: 0, maxCrashes: 3 };

/** The contract of every store for raw tasks claimed by hand. */
export function testByHand(bench: Bench): void {
  const bytes = (text: string) => Buffer.from(text);
  const texts = (tasks: readonly Uint8Array[]) => tasks.map((task) => Buffer.from(task).toString());
  const raw = () => bench.store.raw!;
  const put = (queue: string, ...tasks: string[]) => raw().enqueue(queue, [{ tasks: tasks.map(bytes), unique: false }]);
  const putUnique = async (queue: string, ...tasks: string[]) =>
    (await raw().enqueue(queue, [{ tasks: tasks.map(bytes), unique: true }]))[0];
  const join = (queue: string, worker = 'w1') =>
    bench.store.join(queue, worker, { lease: LEASE, info: '{}', raw: true });
  let nonces = 0;
  const take = async (queue: string, n: number, worker = 'w1') =>
    (await raw().claim({ queue, worker, lease: LEASE }, n, `nonce${++nonces}`)).claimed;
  const back = (queue: string, ...tokens: string[]) => bench.store.settle(queue, tokens.map(returning));
  const sweep = (queue: string) => sweepQueue({ store: bench.store, random: () => 0.5 } as never, queue, CARE);

  describe('raw tasks claimed by hand', () => {
    it('are claimed in order, once, and are gone when finished', async () => {
      const queue = bench.newQueue();
      await join(queue);
      await put(queue, 'a', 'b', 'c');
      const taken = await take(queue, 2);
      expect(texts(taken.map((one) => one.task))).toEqual(['a', 'b']);
      expect(texts((await take(queue, 9)).map((one) => one.task))).toEqual(['c']);
      expect(await take(queue, 9)).toEqual([]);
      const ends = taken.map(({ token }) => ({ token }));
      expect(await raw().finish(queue, [...ends, ends[0]!])).toEqual([true, true, false]);
      expect(await raw().finish(queue, ends)).toEqual([false, false]);
      expect(await bench.store.count(queue)).toMatchObject({ ready: 0, active: 1 });
    });

    it('preserve every byte', async () => {
      const queue = bench.newQueue();
      await join(queue);
      const all = Buffer.from(Array.from({ length: 512 }, (_x, i) => i % 256));
      const tasks = [all, Buffer.alloc(0), Buffer.from('\0'), Buffer.from('w1\0x')];
      await raw().enqueue(queue, [{ tasks, unique: true }]);
      expect((await raw().tasks(queue)).map((task) => Buffer.from(task))).toEqual(tasks);
      expect(Buffer.from((await raw().peek(queue))!)).toEqual(all);
      const taken = await take(queue, 9);
      expect(taken.map(({ task }) => Buffer.from(task))).toEqual(tasks);
      expect(await raw().findLeased(queue, all)).toEqual([taken[0]!.token]);
      expect(await raw().findLeased(queue, Buffer.from('x'))).toEqual([]);
    });

    it('leave the jobs of the queue to other workers, and any worker can finish or return them', async () => {
      const queue = bench.newQueue();
      await join(queue);
      await bench.store.join(queue, 'engine', { lease: LEASE, info: '{}' });
      await bench.store.add(queue, [newJob('job')]);
      await put(queue, 'a', 'b');
      const [mine] = await take(queue, 1);
      const { entries } = await bench.store.claim({ queue, worker: 'engine', lease: LEASE }, 9);
      expect(names(entries).sort()).toEqual(['b', 'job']);
      const theirs = entries.find((entry) => entry.task)!;
      expect(await raw().finish(queue, [{ token: theirs.lease.token }])).toEqual([true]);
      expect(await bench.store.settle(queue, [settlementOf(theirs, finish(COUNTS))])).toEqual([false]);
      expect(await back(queue, mine!.token)).toEqual([true]);
      expect(await take(queue, 9)).toHaveLength(1);
    });

    it('return to the front in the order they were claimed, regardless of the order of the calls', async () => {
      const queue = bench.newQueue();
      await join(queue);
      await put(queue, ...'abcdef');
      const first = await take(queue, 2);
      const second = await take(queue, 2);
      const tokens = [second[0]!, first[1]!, second[1]!, first[0]!].map((one) => one.token);
      expect(await back(queue, ...tokens, tokens[0]!)).toEqual([true, true, true, true, false]);
      expect(texts(await raw().tasks(queue))).toEqual([...'abcdef']);
      expect(await back(queue, ...tokens)).toEqual([false, false, false, false]);
    });

    it('can be listed, counted, cancelled by their bytes and cleared', async () => {
      const queue = bench.newQueue();
      await join(queue);
      await bench.store.add(queue, [newJob('job')]);
      await put(queue, 'x', 'y', 'x', 'z', 'x');
      await take(queue, 1);
      expect(await raw().count(queue, true)).toBe(4);
      expect(texts([(await raw().peek(queue))!])).toEqual(['y']);
      expect(await raw().remove(queue, bytes('x'))).toBe(2);
      expect(await raw().remove(queue, bytes('x'))).toBe(0);
      expect(texts(await raw().tasks(queue))).toEqual(['y', 'z']);
      expect(await raw().findLeased(queue, bytes('x'))).toHaveLength(1);
      await put(queue, 'long'.repeat(100));
      await raw().clear(queue);
      expect(await raw().count(queue, true)).toBe(0);
      expect(await raw().peek(queue)).toBeUndefined();
      expect(await bench.store.count(queue)).toMatchObject({ ready: 1, active: 1 });
      const full = await bench.store.push(queue, [bytes('12345')], { bytes: 200 });
      expect(full, 'the bytes of what was removed are free').toBe(true);
    });

    it('cannot be claimed without a session or while the queue is paused', async () => {
      const queue = bench.newQueue();
      await put(queue, 'a');
      expect(await raw().claim({ queue, worker: 'nobody', lease: LEASE }, 1, 'n')).toEqual({
        status: 'lost',
        claimed: [],
      });
      await join(queue);
      await bench.store.configure(queue, { paused: true });
      expect((await raw().claim({ queue, worker: 'w1', lease: LEASE }, 1, 'n')).status).toBe('paused');
      await bench.store.configure(queue, { paused: false });
      expect(await take(queue, 1)).toHaveLength(1);
    });

    it('respect the limits of the queue', async () => {
      const queue = bench.newQueue();
      await join(queue);
      await put(queue, ...'abcdefgh');
      await bench.store.configure(queue, { limits: { concurrency: 2 } });
      const [a, b] = await take(queue, 5);
      expect(await take(queue, 5)).toEqual([]);
      await raw().finish(queue, [{ token: a!.token }]);
      expect(texts((await take(queue, 5)).map((one) => one.task))).toEqual(['c']);
      await bench.store.configure(queue, { limits: { rate: { count: 3, per: 1_000 } } });
      expect(b).toBeDefined();
      expect(await take(queue, 5)).toHaveLength(3);
      expect(await take(queue, 5)).toEqual([]);
      bench.now += 1_000;
      expect(await take(queue, 5)).toHaveLength(2);
    });

    it('can be settled one by one, in any order and only once, when claimed as a task batch', async () => {
      const queue = bench.newQueue();
      await join(queue);
      const tasks = Array.from({ length: 130 }, (_x, i) => `task ${i}`);
      await put(queue, ...tasks);
      const taken = await take(queue, 130);
      expect(texts(taken.map((one) => one.task))).toEqual(tasks);
      const ends = taken.map(({ token }) => ({ token }));
      const active = async () => (await bench.store.count(queue)).active;
      expect(await active()).toBe(130);

      const some = [77, 3, 51, 129, 3].map((i) => ends[i]!);
      expect(await raw().finish(queue, some)).toEqual([true, true, true, true, false]);
      expect(await active()).toBe(126);
      expect(await raw().finish(queue, ends.slice(0, 5))).toEqual([true, true, true, false, true]);
      expect(await back(queue, ends[90]!.token, ends[3]!.token, ends[89]!.token)).toEqual([true, false, true]);
      expect(texts(await raw().tasks(queue))).toEqual(['task 89', 'task 90']);
      const open = new Set(ends.map(({ token }) => token));
      for (const i of [0, 1, 2, 3, 4, 51, 77, 89, 90, 129]) open.delete(ends[i]!.token);
      expect(new Set((await bench.store.leasesOf(queue, 'w1')).map(({ token }) => token))).toEqual(open);
      expect(await raw().findLeased(queue, bytes('task 88'))).toEqual([ends[88]!.token]);
      expect(await raw().findLeased(queue, bytes('task 77'))).toEqual([]);
      expect(await bench.store.recordProgress(queue, { worker: 'w1', token: ends[88]!.token }, {})).toBe(true);
      expect(await bench.store.recordProgress(queue, { worker: 'w1', token: ends[77]!.token }, {})).toBe(false);

      expect((await raw().finish(queue, ends)).filter(Boolean)).toHaveLength(120);
      expect(await active()).toBe(0);
      expect(await bench.store.leasesOf(queue, 'w1')).toEqual([]);
    });

    it('cannot be finished with a forged token', async () => {
      const queue = bench.newQueue();
      await join(queue);
      await put(queue, 'a', 'b', 'c');
      const [a, b] = await take(queue, 3);
      const made = ['', '7', 'a-b.c', '0.1-000.x', '2.1-001.x', '999.1-999.x'].map((token) => ({ token }));
      expect(await raw().finish(queue, made)).toEqual(made.map(() => false));
      expect((await bench.store.count(queue)).active).toBe(3);
      // The number of tokens matches the task batch, but one of them was never issued.
      const beyond = { token: a!.token.replace('-000.', '-030.') };
      expect(await raw().finish(queue, [a!, b!, beyond])).toEqual([true, true, false]);
      expect((await bench.store.count(queue)).active).toBe(1);
    });

    it('can be enqueued by the thousands in one call', async () => {
      const queue = bench.newQueue();
      await join(queue);
      const many = Array.from({ length: 9_000 }, (_x, i) => `${i}`);
      expect(await putUnique(queue, ...many)).toBe(true);
      expect(await putUnique(queue, 'new', '8999')).toBe(false);
      expect(await raw().count(queue, true)).toBe(9_000);
      expect(texts((await take(queue, 1_000)).map((one) => one.task))).toEqual(many.slice(0, 1_000));
    });
  });

  describe('unique raw tasks', () => {
    it('are refused only while an equal unique task waits or is leased', async () => {
      const queue = bench.newQueue();
      await join(queue);
      await put(queue, 'plain');
      expect(await putUnique(queue, 'plain')).toBe(true);
      expect(await putUnique(queue, 'u')).toBe(true);
      expect(await putUnique(queue, 'u')).toBe(false);
      expect(await put(queue, 'u')).toEqual([true]);
      expect(await putUnique(`${queue}-other`, 'u')).toBe(true);
      const taken = await take(queue, 9);
      expect(await putUnique(queue, 'u')).toBe(false);
      const us = taken.filter(({ task }) => Buffer.from(task).toString() === 'u').map(({ token }) => ({ token }));
      expect(await raw().finish(queue, [us[1]!])).toEqual([true]);
      expect(await putUnique(queue, 'u'), 'the other one carries the mark').toBe(false);
      expect(await raw().finish(queue, [us[0]!])).toEqual([true]);
      expect(await putUnique(queue, 'u')).toBe(true);
    });

    it('are accepted all or none, even with duplicates within one call', async () => {
      const queue = bench.newQueue();
      expect(await putUnique(queue, 'a', 'b', 'a')).toBe(false);
      expect(await raw().count(queue, true)).toBe(0);
      const groups = [['a', 'b'], ['c', 'b'], ['c']].map((tasks) => ({ tasks: tasks.map(bytes), unique: true }));
      const plain = { tasks: [bytes('p')], unique: false };
      expect(await raw().enqueue(queue, [plain, groups[0]!, plain, plain, groups[1]!, groups[2]!])).toEqual([
        true,
        true,
        true,
        true,
        false,
        true,
      ]);
      expect(texts(await raw().tasks(queue))).toEqual(['p', 'a', 'b', 'p', 'p', 'c']);
    });

    it('keep their unique lock when returned, and lose it when cancelled or cleared', async () => {
      const queue = bench.newQueue();
      await join(queue);
      await putUnique(queue, 'u', 'v');
      const [u] = await take(queue, 1);
      await back(queue, u!.token);
      expect(await putUnique(queue, 'u')).toBe(false);
      await raw().remove(queue, bytes('u'));
      expect(await putUnique(queue, 'u')).toBe(true);
      await take(queue, 1);
      await raw().clear(queue);
      expect(await putUnique(queue, 'u')).toBe(true);
      expect(await putUnique(queue, 'v'), 'v is leased').toBe(false);
      await bench.store.obliterate(queue);
      expect(await putUnique(queue, 'v')).toBe(true);
    });

    it('follow the same rules when the engine claims and settles them', async () => {
      const queue = bench.newQueue();
      await bench.store.join(queue, 'engine', { lease: LEASE, info: '{}' });
      const claim = async () => (await bench.store.claim({ queue, worker: 'engine', lease: LEASE }, 1)).entries[0]!;
      await putUnique(queue, 'u');
      const first = await claim();
      expect(await putUnique(queue, 'u')).toBe(false);
      await bench.store.settle(queue, [settlementOf(first, release(COUNTS))]);
      expect(await putUnique(queue, 'u')).toBe(false);
      await bench.store.settle(queue, [settlementOf(await claim(), finish(COUNTS))]);
      expect(await putUnique(queue, 'u')).toBe(true);
    });
  });

  describe('sessions that claim by hand', () => {
    it('return only their own tasks when they end: as raw tasks, to the front, in order, once', async () => {
      const queue = bench.newQueue();
      await join(queue, 'dead');
      await join(queue, 'alive');
      await bench.store.sweep(queue, { lease: LEASE, every: 0 });
      await putUnique(queue, ...'abcdef');
      const lost = await take(queue, 1, 'dead');
      await take(queue, 1, 'alive');
      lost.push(...(await take(queue, 2, 'dead')));
      bench.now += LEASE - 1;
      await bench.store.heartbeat([{ queue, worker: 'alive', lease: LEASE }]);
      bench.now += 1;
      await Promise.all([sweep(queue), sweep(queue), sweep(queue)]);
      expect(texts(await raw().tasks(queue))).toEqual(['a', 'c', 'd', 'e', 'f']);
      expect(await bench.store.count(queue)).toMatchObject({ ready: 5, active: 1, dead: 0 });
      expect(
        await raw().finish(
          queue,
          lost.map(({ token }) => ({ token })),
        ),
      ).toEqual([false, false, false]);
      expect((await bench.store.workers(queue)).map((worker) => worker.id)).toEqual(['alive']);
      expect(await putUnique(queue, 'a'), 'a return keeps the mark').toBe(false);
    });

    it('can be expired explicitly', async () => {
      const queue = bench.newQueue();
      await join(queue, 'doomed');
      await put(queue, 'a', 'b');
      const [a] = await take(queue, 1, 'doomed');
      expect(await raw().updateSession(queue, 'doomed', 'more')).toBe(true);
      expect((await bench.store.workers(queue))[0]).toMatchObject({ id: 'doomed', holds: 1, info: 'more' });
      expect(await raw().expireSession(queue, 'doomed')).toBe(true);
      expect(await raw().updateSession(queue, 'doomed', 'even more')).toBe(false);
      expect(await bench.store.heartbeat([{ queue, worker: 'doomed', lease: LEASE }])).toEqual([false]);
      expect(await raw().claim({ queue, worker: 'doomed', lease: LEASE }, 1, 'n')).toMatchObject({ status: 'lost' });
      await sweep(queue);
      expect(texts(await raw().tasks(queue))).toEqual(['a', 'b']);
      expect(await raw().finish(queue, [{ token: a!.token }])).toEqual([false]);
      expect(await bench.store.workers(queue)).toEqual([]);
      expect(await raw().expireSession(queue, 'doomed')).toBe(false);
    });

    it('can be registered without a visible queue', async () => {
      await bench.store.join('', 'member', { lease: LEASE, info: '{}', raw: true });
      expect((await bench.store.workers('')).map((worker) => worker.id)).toContain('member');
      expect(await bench.store.queues()).not.toContain('');
      await bench.store.leave('', 'member');
    });
  });

  it('done events name exactly the finished tasks with their results, whatever their size', async () => {
    const queue = bench.newQueue();
    const told: string[] = [];
    const ear = raw().subscribe(queue, 'ends', (one) => {
      if (one.type !== 'done') return;
      for (const { worker, token, task, result } of one.ends) {
        told.push([worker, token, Buffer.from(task).toString().slice(0, 8), result?.slice(0, 12)].join(' '));
      }
    });
    await ear.ready;
    await join(queue);
    const large = 'x'.repeat(600_000);
    for (const tasks of [Array.from({ length: 60 }, (_x, i) => `small ${i}`), [`large 0${large}`, `large 1${large}`]]) {
      await put(queue, ...tasks);
      const taken = await take(queue, tasks.length);
      const ends = taken.map(({ token }, i) => ({ token, result: `"result ${i}"` }));
      const wanted = (from: number, to: number) =>
        tasks
          .slice(from, to)
          .map((task, i) => ['w1', ends[from + i]!.token, task.slice(0, 8), ends[from + i]!.result].join(' '));
      await raw().finish(queue, ends.slice(1, 2));
      await raw().finish(queue, ends);
      await until('all done events', () => told.length >= tasks.length);
      expect(told.splice(0)).toEqual([...wanted(1, 2), ...wanted(0, 1), ...wanted(2, tasks.length)]);
    }
    // Results that are too large for one message.
    await put(queue, 'one', 'two', 'three');
    const taken = await take(queue, 3);
    await raw().finish(
      queue,
      taken.map(({ token }, i) => ({ token, result: `"${i}${large}"` })),
    );
    await until('all done events', () => told.length >= 3);
    expect(told).toEqual(['one', 'two', 'three'].map((task, i) => `w1 ${taken[i]!.token} ${task} "${i}xxxxxxxxxx`));
    ear.stop();
  });

  it('task events reach every subscriber', async () => {
    const queue = bench.newQueue();
    const news: TaskEvent[] = [];
    const ears = (['news', 'ends'] as const).map((about) => raw().subscribe(queue, about, (one) => news.push(one)));
    await Promise.all(ears.map((ear) => ear.ready));
    news.length = 0;
    await join(queue);
    await put(queue, 'a', 'b', '\xff');
    const [a, b, c] = await take(queue, 3);
    await raw().finish(queue, [{ token: a!.token, result: '{"ok":1}' }, { token: b!.token }]);
    await back(queue, c!.token);
    await raw().remove(queue, bytes('\xff'));
    await raw().clear(queue);
    await until('the last task event', () => news.some(({ type }) => type === 'delete'));
    for (const ear of ears) ear.stop();
    const text = <T extends { task: Uint8Array }>(one: T) => ({ ...one, task: Buffer.from(one.task).toString() });
    const shown = news.flatMap((one): unknown[] => {
      if (one.type === 'done') return one.ends.map((end) => ({ type: 'done', ...text(end) }));
      return [one.type === 'cancel' ? text(one) : one];
    });
    expect(shown).toEqual([
      { type: 'work', count: 3 },
      { type: 'done', worker: 'w1', token: a!.token, task: 'a', result: '{"ok":1}' },
      { type: 'done', worker: 'w1', token: b!.token, task: 'b' },
      { type: 'work', count: 1 },
      { type: 'cancel', task: '\xff' },
      { type: 'delete' },
    ]);
  });
}

const COUNTS = { attempt: 1, crashes: 0, spec: DEFAULT_SPEC };

function returning(token: string): Settlement {
  return { lease: { worker: '', token }, outcome: release(COUNTS), spec: DEFAULT_SPEC, priority: 0 };
}
