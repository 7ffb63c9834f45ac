import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Crore, Fatal, type JobEvent, open, type Queue } from '../../dist/index.js';
import { startWorker } from '../support/processes.js';
import { deferred, until } from '../support/wait.js';

const folder = mkdtempSync(join(tmpdir(), 'crore-features-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe.each([
  ['sqlite', () => `sqlite:${join(folder, 'features.db')}`],
  ['redis', () => `${inject('redisUrl')}?prefix=features`],
])('limits, groups and events of the library on %s', (_name, url) => {
  let crore: Crore;
  let queues = 0;
  beforeAll(async () => {
    crore = await open(url(), { onError: () => {} });
  });
  afterAll(() => crore.close());
  const fresh = <T, R = unknown>(): Queue<T, R> => crore.queue<T, R>(`features-${++queues}`);

  describe('bulk operations', () => {
    it('cancels the matching jobs in batches and reports progress', async () => {
      const queue = fresh<{ n: number }>();
      await queue.addMany(
        Array.from({ length: 1_200 }, (_x, n) => ({ payload: { n }, id: `${n % 2 ? 'odd' : 'even'}-${n}` })),
      );
      await queue.add({ n: 5_000 }, { id: 'odd-later', delay: '1h' });
      const steps: number[] = [];
      expect(await queue.cancel({ id: 'odd' }, { progress: (_seen, changed) => steps.push(changed) })).toBe(601);
      expect(steps.at(-1)).toBe(601);
      expect(steps.length).toBeGreaterThan(2);
      expect(await queue.count()).toMatchObject({ ready: 600, scheduled: 0, cancelled: 601 });
      expect(await queue.cancel({ text: '"n":998}' })).toBe(1);
      expect(await queue.remove({ state: 'cancelled', id: 'odd' })).toBe(601);
      expect((await queue.count()).cancelled).toBe(1);
    });

    it('retries or removes dead jobs by the text of their error', async () => {
      const queue = fresh<string>();
      const worker = queue.work(async (job) => {
        throw new Fatal(job.payload);
      });
      await queue.addMany(['disk full', 'no route', 'disk full'].map((payload) => ({ payload })));
      await until('all jobs are dead', async () => (await queue.count()).dead === 3);
      await worker.close();
      expect(await queue.retryDead({ text: 'disk' })).toBe(2);
      expect(await queue.count()).toMatchObject({ ready: 2, dead: 1 });
      const [dead] = (await queue.list('dead')).jobs;
      expect(await queue.remove(dead!.id)).toBe(true);
      expect(await queue.remove(dead!.id)).toBe(false);
    });

    it('pages with a filter, and stops when aborted', async () => {
      const queue = fresh<number>();
      await queue.addMany(
        Array.from({ length: 300 }, (_x, n) => ({ payload: n, id: `${n % 3}-${n}`, group: `g${n % 2}` })),
      );
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await queue.list('ready', { limit: 7, cursor, filter: { id: '1-', group: 'g0' } });
        seen.push(...page.jobs.map((job) => job.id));
        cursor = page.cursor;
      } while (cursor !== undefined);
      expect(new Set(seen).size).toBe(50);
      const later = new Date(Date.now() + 3_600_000);
      expect((await queue.list('ready', { filter: { after: later } })).jobs).toEqual([]);
      expect((await queue.list('ready', { filter: { before: later }, limit: 1_000 })).jobs.length).toBeGreaterThan(0);
      const ended = AbortSignal.abort();
      await expect(queue.cancel({}, { signal: ended })).rejects.toThrow(/abort/i);
      expect((await queue.count()).ready).toBe(300);
    });

    it.each([
      ['cancel', [{ state: 'done' }], 'state'],
      ['cancel', [{ nonsense: 1 }], 'nonsense'],
      ['remove', [{ state: 'ready' }], 'state'],
      ['remove', [{ text: 5 }], 'text'],
      ['retryDead', [{ before: 'tomorrow' }], 'before'],
      ['list', ['ready', { filter: { state: 'done' } }], 'state'],
      ['list', ['ready', { cursor: 'no cursor!' }], 'cursor'],
      ['setLimits', [{ concurrency: 0 }], 'concurrency'],
      ['setLimits', [{ rate: { count: 1 } }], 'per'],
      ['setLimits', [{ group: { rate: { count: 1.5, per: '1s' } } }], 'limits.group.rate.count'],
      ['setLimits', [{ concurency: 1 }], 'concurency'],
      ['setLimits', [{ ordered: true }], 'ordered'],
      ['setLimits', [{ group: { ordered: 'yes' } }], 'limits.group.ordered'],
      ['setLimits', [{ group: { ordered: true, concurrency: 2 } }], 'limits.group'],
      ['events', [{ after: 'yesterday' }], 'after'],
      ['events', [{ types: ['finished'] }], 'types'],
      ['add', [1, { group: '' }], 'group'],
      ['add', [1, { unique: { key: 'k', mode: 'merge' } }], 'unique.mode'],
    ] as const)('%s(%j) is refused, naming what is wrong', async (verb, args, word) => {
      const queue = fresh();
      await queue.add('stays');
      const call = (queue[verb] as (...values: unknown[]) => Promise<unknown>)(...args);
      await expect(call).rejects.toMatchObject({
        code: expect.stringMatching(/^BAD_/),
        message: expect.stringContaining(word),
      });
      expect((await queue.count()).ready).toBe(1);
    });
  });

  describe('debounce and throttle', () => {
    it('a debounced job runs once, with the last payload', async () => {
      const queue = fresh<string, string>();
      const unique = { key: 'search', scope: 'waiting', mode: 'replace' } as const;
      const handles = [];
      for (const text of ['c', 'cr', 'cro', 'crore']) handles.push(await queue.add(text, { delay: 50, unique }));
      expect(handles.map(({ outcome }) => outcome)).toEqual(['created', 'replaced', 'replaced', 'replaced']);
      const seen: string[] = [];
      queue.work(async (job) => {
        seen.push(job.payload);
        return job.payload;
      });
      expect(await handles[3]!.finished({ timeout: '20s' })).toBe('crore');
      expect(seen).toEqual(['crore']);
    });
  });

  describe('limits', () => {
    it('hold across processes, and a worker killed with -9 leaves nothing blocked', async () => {
      const queue = fresh<string>();
      await queue.setLimits({ concurrency: 4, group: { concurrency: 1 } });
      const session = { lease: 600, heartbeat: 100, sweep: 100, concurrency: 8, maxCrashes: 20 };
      const setup = { url: url(), queue: queue.name, take: 40, options: session };
      const workers = await Promise.all([startWorker(setup), startWorker(setup), startWorker(setup)]);
      const groups = ['a', 'b', 'c', 'd', 'e', 'f'];
      await queue.addMany(
        Array.from({ length: 60 }, (_x, i) => ({ payload: 'x', id: `${groups[i % 6]}-${i}`, group: groups[i % 6]! })),
      );
      let most = 0;
      let busiest = 0;
      const look = async () => {
        const { jobs } = await queue.list('active', { limit: 100 });
        most = Math.max(most, jobs.length);
        const byGroup = new Map<string, number>();
        for (const { id } of jobs) byGroup.set(id[0]!, (byGroup.get(id[0]!) ?? 0) + 1);
        busiest = Math.max(busiest, ...byGroup.values(), 0);
        return queue.count();
      };
      await until('work is in progress', async () => (await look()).done >= 5);
      await workers[0]!.end('SIGKILL');
      await until('all jobs are done', async () => (await look()).done === 60, { within: 60_000 });
      for (const worker of workers) await worker.end();
      expect(most).toBeLessThanOrEqual(4);
      expect(busiest).toBe(1);
    });

    it('keep ordered groups in order through failures, snoozes and a worker killed with -9', async () => {
      const queue = fresh<number>();
      await queue.setLimits({ group: { ordered: true } });
      expect(await queue.limits()).toEqual({ group: { ordered: true } });
      const session = { lease: 600, heartbeat: 100, sweep: 100, concurrency: 8, maxCrashes: 20 };
      const killed = await startWorker({ url: url(), queue: queue.name, take: 60_000, options: session });
      const jobs = Array.from({ length: 24 }, (_x, i) => ({ payload: i, group: `g${i % 4}`, backoff: 10 }));
      await queue.addMany(jobs);
      await until('each group has a job in hand', async () => (await queue.count()).active === 4);
      await killed.end('SIGKILL');
      const ended = new Map<number, number[]>();
      queue.work(
        async (job) => {
          const mine = ended.get(job.payload % 4) ?? [];
          ended.set(job.payload % 4, mine);
          if (job.attempt === 1 && job.payload % 3 === 0) throw new Error('once more');
          if (job.attempt === 1 && job.payload % 3 === 1 && Math.random() < 0.5) return job.snooze(5);
          mine.push(job.payload);
          return undefined;
        },
        { ...session },
      );
      await until('all jobs are done', async () => (await queue.count()).done === 24, { within: 60_000 });
      for (const group of ended.values()) expect(group).toEqual([...group].sort((a, b) => a - b));
    });

    it('prevent one busy group from starving the others', async () => {
      const queue = fresh<string>();
      await queue.addMany(
        Array.from({ length: 500 }, (_x, i) => ({ payload: 'noise', id: `noisy-${i}`, group: 'noisy' })),
      );
      await queue.addMany(
        Array.from({ length: 10 }, (_x, i) => ({ payload: 'quiet', id: `quiet-${i}`, group: 'quiet' })),
      );
      const order: string[] = [];
      const done = deferred<void>();
      queue.work(async (job) => {
        order.push(job.id!.split('-')[0]!);
        if (order.length === 510) done.resolve();
      });
      await done.promise;
      expect(order.lastIndexOf('quiet')).toBeLessThan(25);
    });

    it('enforce a rate: further starts wait for the next interval', async () => {
      const queue = fresh<number>();
      await queue.setLimits({ rate: { count: 5, per: 300 } });
      expect(await queue.limits()).toEqual({ rate: { count: 5, per: 300 } });
      const starts: number[] = [];
      queue.work(async (job) => void starts.push(job.payload), { concurrency: 20 });
      await queue.addMany(Array.from({ length: 12 }, (_x, payload) => ({ payload })));
      const began = performance.now();
      await until('all jobs have started', () => starts.length === 12);
      // two full intervals have to pass before the last two may start, however slow the machine is
      expect(performance.now() - began).toBeGreaterThan(290);
      expect(starts).toEqual([...starts].sort((a, b) => a - b));
    });
  });

  describe('events', () => {
    it('are available as an iterator, across processes, and can be resumed from a position', async () => {
      const queue = fresh<string>();
      const events = await queue.events({ types: ['added', 'started', 'done'] });
      const worker = await startWorker({ url: url(), queue: queue.name });
      await queue.add('x', { id: 'one' });
      const seen: JobEvent[] = [];
      for await (const event of events) {
        seen.push(event);
        if (event.type === 'done') break;
      }
      expect(seen.map(({ type, id }) => `${type} ${id}`)).toEqual(['added one', 'started one', 'done one']);
      expect(seen[1]).toMatchObject({ attempt: 1, queue: queue.name });
      events.close();
      await queue.add('y', { id: 'two' });
      await until('job two is done', async () => (await queue.get('two'))?.state === 'done');
      await worker.end();
      const resumed = await queue.events({ after: seen[1]!.position });
      const rest: string[] = [];
      for await (const { type, id } of resumed) {
        rest.push(`${type} ${id}`);
        if (id === 'two' && type === 'done') break;
      }
      resumed.close();
      expect(rest).toEqual(['done one', 'added two', 'started two', 'done two']);
    });

    it('reach listeners by type, with the error', async () => {
      const queue = fresh<string>();
      const events = await queue.events();
      const retried = deferred<JobEvent>();
      const progressed = deferred<JobEvent>();
      const all: string[] = [];
      events.on('retry', (event: JobEvent) => retried.resolve(event));
      events.on('progress', (event: JobEvent) => progressed.resolve(event));
      events.on('event', ({ type }: JobEvent) => all.push(type));
      queue.work(
        async (job) => {
          await job.progress({ percent: 50 });
          if (job.attempt === 1) throw new Error('first time');
        },
        { backoff: () => 1 },
      );
      const handle = await queue.add('x');
      await handle.finished({ timeout: '20s' });
      expect(await retried.promise).toMatchObject({ id: handle.id, error: 'Error: first time' });
      expect(await progressed.promise).toMatchObject({ progress: { percent: 50 } });
      await until('the done event arrives', () => all.includes('done'));
      events.close();
      expect(all.filter((type) => type !== 'progress')).toEqual(['added', 'started', 'retry', 'started', 'done']);
    });

    it('reach listeners and iterators, and a listener that throws does not affect the others', async () => {
      const queue = fresh<number>();
      const events = await queue.events({ types: ['added'] });
      const heard: string[] = [];
      const all: string[] = [];
      events.on('added', ({ id }: JobEvent) => {
        heard.push(id);
        throw new Error('a listener of little care');
      });
      events.on('event', ({ id }: JobEvent) => all.push(id));
      // it starts at the position of the listeners, so it has to exist before they have received anything
      const iterator = events[Symbol.asyncIterator]();
      const ids = (await queue.addMany(Array.from({ length: 20 }, (_x, payload) => ({ payload })))).map(({ id }) => id);
      const walked: string[] = [];
      for await (const { id } of iterator) {
        walked.push(id);
        await new Promise((resolve) => setTimeout(resolve, 2)); // slower than the listeners
        if (walked.length === 20) break;
      }
      await until('all events arrived', () => all.length === 20);
      events.close();
      expect([heard, all, walked]).toEqual([ids, ids, ids]);
    });

    it('end when the connection closes', async () => {
      const other = await open(url(), { onError: () => {} });
      const events = await other.queue('features-closing').events();
      const over = (async () => {
        for await (const _event of events);
      })();
      await other.close();
      await over;
    });
  });
});
