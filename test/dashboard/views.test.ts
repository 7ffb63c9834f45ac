import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type {
  DeadView,
  HistoryView,
  JobsView,
  JobView,
  OverviewView,
  QueueView,
  SchedulesView,
  WorkersView,
} from '../../dist/dashboard/api.js';
import { Fatal } from '../../dist/index.js';
import { DEFAULT_SPEC } from '../../dist/job/spec.js';
import { STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';
import { follow, startDashboard, type TestDashboard } from './support/dashboard.js';

const query = (parameters: Record<string, string>) => new URLSearchParams(parameters).toString();

describe.each(STORES)('the views of the dashboard on %s', (_name, fresh) => {
  let store: TestStore;
  let dashboard: TestDashboard;
  beforeAll(async () => {
    store = await fresh();
    dashboard = await startDashboard(store.url);
  });
  afterAll(async () => {
    await dashboard.close();
    await store.stop();
  });
  const jobOf = (queue: string, id: string) => dashboard.get<JobView>(`api/job?${query({ queue, id })}`);

  it('overview: queues with depths and ages, and what needs attention', async () => {
    const { crore } = dashboard;
    await crore.queue('over-idle').add(1);
    await crore.queue('over-paused').add(1);
    await crore.queue('over-paused').pause();
    const view = await dashboard.get<OverviewView>('api/overview?search=OVER-');
    expect(view.queues.map(({ name }) => name)).toEqual(['over-idle', 'over-paused']);
    expect(view).toMatchObject({ matching: 2, more: false });
    expect(view.queues[0]).toMatchObject({ counts: { ready: 1 }, workers: 0, paused: false });
    expect(view.queues[0]!.oldest).toBeGreaterThanOrEqual(0);
    const attention = view.attention.map(({ kind, queue }) => `${queue} ${kind}`);
    expect(attention).toEqual(expect.arrayContaining(['over-idle no-worker', 'over-paused paused']));
    await crore.queue('over-paused').resume();
  });

  it('a job: its children and its parent, its batch and its members, and what they hold up', async () => {
    const { crore } = dashboard;
    const albums = crore.queue<null>('rel-albums');
    const worker = albums.work(async (job) => {
      if ((await job.children()).length > 0) return;
      await job.addChildren([{ queue: 'rel-photos', payload: 1 }]);
      return job.waitForChildren() as never;
    });
    await albums.add(null, { id: 'a' });
    await until('the parent waits', async () => (await albums.get('a'))!.state === 'blocked');
    expect(await jobOf('rel-albums', 'a')).toMatchObject({
      tree: [{ queue: 'rel-photos', id: 'a.0', state: 'ready', on: 'success', depth: 0 }],
      treeCut: false,
      reasons: ['It waits for one child that has not ended.'],
    });
    expect(await jobOf('rel-photos', 'a.0')).toMatchObject({
      parent: { queue: 'rel-albums', id: 'a', state: 'blocked' },
      dependents: [{ queue: 'rel-albums', id: 'a' }],
    });
    const batch = await crore.queue('rel-owner').addBatch(null, { id: 'b' });
    await crore.queue('rel-photos').add(2, { id: 'm', batch });
    expect(await jobOf('rel-owner', 'b')).toMatchObject({
      batch: { open: true, total: 1, done: 0, members: [{ queue: 'rel-photos', id: 'm', state: 'ready' }] },
      reasons: expect.arrayContaining([
        expect.stringContaining('Its batch is open'),
        '1 of 1 members of its batch has not ended.',
      ]),
    });
    expect((await jobOf('rel-photos', 'm')).memberOf).toEqual({ queue: 'rel-owner', id: 'b', state: 'blocked' });
    const act = async (action: string, queue: string, id: string) =>
      (await dashboard.post('api/act', { action, queue, id })).json();
    expect(await act('cancel-members', 'rel-owner', 'b')).toEqual({ changed: 1 });
    expect((await batch.status()).open).toBe(true);
    expect(await act('close-batch', 'rel-owner', 'b')).toEqual({ changed: 1 });
    expect((await batch.status()).state).toBe('ready');
    expect(await act('close-batch', 'rel-owner', 'none')).toMatchObject({ code: 'NOT_FOUND' });
    expect(await act('cancel-tree', 'rel-albums', 'a')).toEqual({ changed: 2 });
    expect((await crore.queue('rel-photos').get('a.0'))!.actions).toMatchObject([{ by: '127.0.0.1 in the dashboard' }]);
    expect(await act('remove-tree', 'rel-albums', 'a')).toEqual({ changed: 2 });
    await worker.close();
  });

  it('a tree: what is below a job, each followed by what is below that', async () => {
    const leaf = (id: string) => ({ queue: 'tree-leaves', id, payload: 1 });
    const branch = {
      queue: 'trees',
      id: 'branch',
      payload: 1,
      on: 'finished' as const,
      children: [leaf('x'), leaf('y')],
    };
    await dashboard.crore.addTree({ queue: 'trees', id: 'root', payload: 1, children: [branch, leaf('z')] });
    const job = await jobOf('trees', 'root');
    expect(job.tree.map(({ id, on, depth }) => `${id} ${on} ${depth}`)).toEqual([
      'branch finished 0',
      'x success 1',
      'y success 1',
      'z success 0',
    ]);
    expect(job.needs).toEqual([]);
    expect(job.story.at(-1)!.text).toBe('Waits for other jobs');
  });

  it('overview: pages of queues, continued after the last name', async () => {
    const { crore } = dashboard;
    await Promise.all(Array.from({ length: 60 }, (_, i) => crore.queue(`paged-${String(i).padStart(2, '0')}`).add(i)));
    const first = await dashboard.get<OverviewView>('api/overview?search=paged-');
    expect(first).toMatchObject({ matching: 60, more: true });
    const last = first.queues.at(-1)!.name;
    const second = await dashboard.get<OverviewView>(`api/overview?${query({ search: 'paged-', after: last })}`);
    expect(second.more).toBe(false);
    expect([...first.queues, ...second.queues].map(({ name }) => name)).toEqual(
      Array.from({ length: 60 }, (_, i) => `paged-${String(i).padStart(2, '0')}`),
    );
  });

  it('a queue: its workers and what they hold, its limits and schedules', async () => {
    const { crore } = dashboard;
    const queue = crore.queue<number, number>('busy');
    let finish = (_value: number) => {};
    const finished = new Promise<number>((resolve) => {
      finish = resolve;
    });
    const worker = queue.work(() => finished, { concurrency: 3 });
    await queue.add(1, { id: 'held' });
    await queue.setLimits({ concurrency: 7 });
    await crore.schedule('busy-nightly', '0 4 * * *', { queue: 'busy', payload: { all: true } });
    await until('the job is held', async () => (await queue.count()).active === 1);
    const view = await dashboard.get<QueueView>('api/queue?name=busy');
    expect(view).toMatchObject({
      known: true,
      queue: { limits: { concurrency: 7 }, workers: 1, counts: { active: 1 } },
    });
    expect(view.workers).toMatchObject([{ pid: process.pid, concurrency: 3, holds: 1, jobs: [{ id: 'held' }] }]);
    expect(view.schedules).toMatchObject([{ name: 'busy-nightly', cron: '0 4 * * *', payload: '{"all":true}' }]);
    const held = await jobOf('busy', 'held');
    expect(held.reasons).toEqual([]);
    expect(held.leaseUntil).toBeGreaterThan(held.now);
    expect(held.story.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['added', 'running']));
    const { workers } = await dashboard.get<WorkersView>('api/workers');
    expect(workers.map((one) => one.queue)).toContain('busy');
    const { schedules } = await dashboard.get<SchedulesView>('api/schedules');
    const [nightly] = schedules.filter(({ name }) => name === 'busy-nightly');
    expect(nightly!.next).toHaveLength(10);
    expect(new Set(nightly!.next.map((at) => new Date(at).toISOString().slice(11)))).toEqual(
      new Set(['04:00:00.000Z']),
    );
    finish(1);
    await worker.close();
    await crore.unschedule('busy-nightly');
  });

  it('a queue that never was: known to be unknown', async () => {
    expect(await dashboard.get<QueueView>('api/queue?name=never')).toMatchObject({ known: false, workers: [] });
  });

  it('jobs: by state, filtered by id, payload, header, error and group, page by page', async () => {
    const { crore } = dashboard;
    const queue = crore.queue('listed');
    await queue.addMany(Array.from({ length: 120 }, (_, i) => ({ payload: { n: i }, id: `id-${i}` })));
    await queue.add({ to: 'needle' }, { id: 'special', group: 'g', headers: { trace: 'abc-123' } });
    const list = (more: Record<string, string>) =>
      dashboard.get<JobsView>(`api/jobs?${query({ queue: 'listed', state: 'ready', ...more })}`);
    const first = await list({});
    expect(first.jobs).toHaveLength(50);
    const ids = new Set(first.jobs.map(({ id }) => id));
    for (let page = first; page.cursor !== undefined; ) {
      page = await list({ cursor: page.cursor });
      for (const { id } of page.jobs) ids.add(id);
    }
    expect(ids.size).toBe(121);
    const found = async (more: Record<string, string>) => (await list(more)).jobs.map(({ id }) => id);
    expect(await found({ text: 'needle' })).toEqual(['special']);
    expect(await found({ text: 'abc-123' })).toEqual(['special']);
    expect(await found({ group: 'g' })).toEqual(['special']);
    expect(await found({ id: 'id-11' })).toHaveLength(11);
    expect(await found({ after: '2999-01-01' })).toEqual([]);
    expect(await found({ before: '2999-01-01', id: 'special' })).toEqual(['special']);
  });

  it('a job: its story from attempts, retries by hand and errors with stacks', async () => {
    const { crore } = dashboard;
    const queue = crore.queue<{ n: number }, string>('storied');
    let runs = 0;
    const worker = queue.work(
      async (job) => {
        await job.log(`run ${++runs}`);
        if (runs < 3) throw new TypeError(`failure ${runs}`);
        return 'good at last';
      },
      { backoff: () => 5 },
    );
    const home = crore.queue('storied-before');
    await home.add({ n: 1 }, { id: 's', attempts: 2, headers: { who: 'ada' }, delay: '1h' });
    await dashboard.post('api/act', { action: 'move', queue: 'storied-before', ids: ['s'], to: 'storied' });
    const handle = queue.handle('s');
    await dashboard.post('api/act', { action: 'run-now', queue: 'storied', ids: ['s'] });
    await handle.finished().catch(() => {});
    await dashboard.post('api/act', { action: 'retry', queue: 'storied', ids: ['s'] });
    expect(await handle.finished()).toBe('good at last');
    const job = await jobOf('storied', 's');
    expect(job).toMatchObject({ state: 'done', headers: { who: 'ada' }, log: ['run 1', 'run 2', 'run 3'] });
    expect(job.result).toMatchObject({ kind: 'json', text: '"good at last"' });
    const told = job.story.filter(({ kind }) => kind !== 'waited').map(({ text }) => text);
    // What was done by hand has the time of this process, everything else that of the store: the clocks may differ by more than passes between two of them.
    const of = (pattern: RegExp) => told.filter((text) => pattern.test(text));
    expect(of(/127\.0\.0\.1/)).toEqual([
      'Moved from queue “storied-before” by 127.0.0.1 in the dashboard',
      'Changed by 127.0.0.1 in the dashboard: due now',
      'Retried by 127.0.0.1 in the dashboard',
    ]);
    expect(of(/^(Attempt|run)/)).toEqual([
      'Attempt 1 failed',
      'run 1',
      'Attempt 2 failed',
      'run 2',
      'Attempt 1 succeeded',
      'run 3',
    ]);
    expect([told[0], told.at(-1), told.length]).toEqual(['Added', 'Done', 11]);
    const [failure] = job.story.filter(({ kind }) => kind === 'attempt');
    expect(failure!.attempt!.error).toMatchObject({ name: 'TypeError', message: 'failure 1' });
    expect(failure!.attempt!.error!.stack).toContain('views.test.ts');
    await worker.close();
  });

  it('a job: what an attempt wrote follows it, although the clock of its worker was set', async () => {
    const queue = dashboard.crore.queue('shifted');
    const { now } = Date;
    vi.spyOn(Date, 'now').mockImplementation(() => now() + 90_000);
    const worker = queue.work(
      async (job) => {
        await job.log(`line ${job.attempt}`);
        if (job.attempt === 1) throw new Error('not yet');
      },
      { backoff: () => 5 },
    );
    const handle = await queue.add(1, { id: 's', attempts: 2 });
    await handle.finished();
    await worker.close();
    vi.restoreAllMocks();
    const { story } = await jobOf('shifted', 's');
    const told = story.map(({ text }) => text).filter((text) => /^(Attempt|line)/.test(text));
    expect(told).toEqual(['Attempt 1 failed', 'line 1', 'Attempt 2 succeeded', 'line 2']);
  });

  it('a job: why it is not running now', async () => {
    const { crore } = dashboard;
    const queue = crore.queue('reasons');
    await queue.add(1, { id: 'first' });
    expect((await jobOf('reasons', 'first')).reasons[0]).toContain('No worker serves the queue');
    await queue.pause();
    expect((await jobOf('reasons', 'first')).reasons[0]).toBe('The queue is paused.');
    await queue.add(2, { id: 'later', delay: '1h' });
    expect((await jobOf('reasons', 'later')).reasons[0]).toMatch(/^It is not due before 2\d\d\d-/);
    await queue.add(3, { id: 'blocked', needs: ['first'] });
    const blocked = await jobOf('reasons', 'blocked');
    expect(blocked.reasons[0]).toBe('It waits for one job that has not ended.');
    expect(blocked.needs).toEqual([{ queue: 'reasons', id: 'first', on: 'success', state: 'ready' }]);
    expect((await jobOf('reasons', 'first')).dependents).toEqual([
      { queue: 'reasons', id: 'blocked', state: 'blocked' },
    ]);
    await queue.resume();
    await queue.setLimits({ concurrency: 1 });
    let finish = () => {};
    const worker = queue.work(() => new Promise<void>((resolve) => (finish = resolve)), { concurrency: 5 });
    await until('the first runs', async () => (await queue.count()).active === 1);
    await queue.add(4, { id: 'limited' });
    expect((await jobOf('reasons', 'limited')).reasons[0]).toBe('The queue is at its limit of 1 running at once.');
    await queue.cancel({});
    finish();
    await worker.close();
  });

  it('a job: a command line that adds it again', async () => {
    const { crore } = dashboard;
    const queue = crore.queue('again');
    await queue.add({ to: "o'neill" }, { id: 'json', priority: 3, group: 'g', headers: { tenant: 'acme' } });
    await queue.add('just text', { id: 'text' });
    await queue.add(new Uint8Array([0, 1, 255]), { id: 'bytes' });
    expect((await jobOf('again', 'json')).command).toBe(
      `crore push --priority 3 --group g --header tenant=acme -- again '{"to":"o'\\''neill"}'`,
    );
    expect((await jobOf('again', 'text')).command).toBe("crore push --text -- again 'just text'");
    const bytes = await jobOf('again', 'bytes');
    expect(bytes.command).toBe('');
    expect(bytes.payload).toMatchObject({ kind: 'bytes', size: 3, text: expect.stringContaining('00 01 ff') });
    const { jobs } = await dashboard.get<JobsView>(`api/jobs?${query({ queue: 'again', state: 'ready' })}`);
    expect(jobs.find(({ id }) => id === 'bytes')?.payload).toBe('encoded or binary, 3 bytes');
  });

  it('a job that never was: not found', async () => {
    expect(await dashboard.refusal('api/job?queue=x&id=y')).toEqual({ status: 404, error: 'there is no such job' });
  });

  it('dead jobs: grouped by what their errors have in common', async () => {
    const { crore } = dashboard;
    const queue = crore.queue<string>('deadly');
    const worker = queue.work((job) => {
      throw new Fatal(job.payload);
    });
    const errors = ['no user 17', 'no user 4711', "timeout of 'a.example'", "timeout of 'b.example'", 'something else'];
    const handles = await Promise.all(errors.map((error) => queue.add(error)));
    await Promise.all(handles.map((handle) => handle.finished().catch(() => {})));
    await worker.close();
    const view = await dashboard.get<DeadView>('api/dead?queue=deadly');
    expect(view).toMatchObject({ total: 5, looked: 5, queues: [{ name: 'deadly', dead: 5, dropped: 0 }] });
    const groups = Object.fromEntries(view.groups.map(({ pattern, count }) => [pattern, count]));
    expect(groups).toEqual({ 'Fatal: no user …': 2, 'Fatal: timeout of …': 2, 'Fatal: something else': 1 });
    const all = await dashboard.get<DeadView>('api/dead');
    expect(all.groups.map(({ pattern }) => pattern)).toEqual(expect.arrayContaining(Object.keys(groups)));
  });

  it('history: what happened in the queue, with wait and run times', async () => {
    const { crore } = dashboard;
    const queue = crore.queue<number, void>('past');
    const worker = queue.work(async (job) => {
      if (job.payload === 3) throw new Fatal('no');
    });
    const handles = await queue.addMany([1, 2, 3].map((payload) => ({ payload })));
    await Promise.all(handles.map((handle) => handle.finished().catch(() => {})));
    await worker.close();
    const read = () => dashboard.get<HistoryView>('api/history?queue=past&range=hour');
    const sums = async () => {
      const { points } = await read();
      const sum = (of: 'added' | 'done' | 'failed' | 'dead') => points.reduce((total, point) => total + point[of], 0);
      return [sum('added'), sum('done'), sum('failed'), sum('dead')].join();
    };
    await until('the activity is written', async () => (await sums()) === '3,2,1,1');
    const { points, kept } = await read();
    expect([kept, points.length]).toEqual([true, 60]);
    const active = points.find(({ done }) => done > 0)!;
    expect(active.run).toHaveLength(3);
    expect(active.wait![0]).toBeGreaterThanOrEqual(0);
    const all = await dashboard.get<HistoryView>('api/history?range=day');
    expect(all.points.at(-1)!.done).toBeGreaterThanOrEqual(2);
  });

  it('a job: a progress that is no JSON, or large, is shown as text', async () => {
    const { store: direct } = dashboard;
    await direct.join('odd', 'w', { lease: 60_000, info: 'no JSON either' });
    await direct.add('odd', [{ id: 'a', payload: '1', priority: 0, spec: DEFAULT_SPEC }]);
    const { entries } = await direct.claim({ queue: 'odd', worker: 'w', lease: 60_000 }, 1);
    for (const progress of ['not json', '['.repeat(30_000), JSON.stringify('x'.repeat(100_000))]) {
      await direct.recordProgress('odd', entries[0]!.lease, { progress });
      expect(String((await jobOf('odd', 'a')).progress).length).toBeLessThan(2_100);
      expect((await dashboard.get<JobsView>('api/jobs?queue=odd&state=active')).jobs).toHaveLength(1);
    }
  });

  it('a job: how many others it waits for, also if there are many, and what is wrong with them', async () => {
    const { crore } = dashboard;
    const queue = crore.queue<number, void>('many');
    await queue.addMany(Array.from({ length: 150 }, (_, i) => ({ payload: i, id: `up-${i}` })));
    await queue.add(0, { id: 'down', needs: Array.from({ length: 150 }, (_, i) => `up-${i}`) });
    const worker = queue.work(
      async (job) => {
        if (job.id === 'up-149') throw new Error('the last one fails');
      },
      { backoff: () => 3_600_000 },
    );
    await until('only one is left', async () => (await queue.count()).scheduled === 1);
    await worker.close();
    const { reasons, needs, needsTotal } = await jobOf('many', 'down');
    expect(reasons[0]).toBe('It waits for one job that has not ended.');
    expect(reasons[1]).toMatch(
      /^'up-149' of queue 'many' has failed 1 of 5 times and is tried again at .*: Error: the last/,
    );
    expect([needs.length, needsTotal]).toEqual([100, 150]);
  });

  it('live: sends a view when it changes, and not when it does not', async () => {
    const queue = dashboard.crore.queue('lively');
    await queue.add(1, { id: 'one' });
    let added = false;
    const address = `${dashboard.http}/api/live?${query({ view: 'jobs', queue: 'lively', state: 'ready' })}`;
    const messages = await follow(address, (seen) => {
      if (seen.length === 1 && !added) {
        added = true;
        // long enough for the view to be read again without a change
        setTimeout(() => void queue.add(2, { id: 'two' }), 1_500);
      }
      return seen.length === 2;
    });
    const ids = messages.map(({ data }) => (data as JobsView).jobs.map(({ id }) => id));
    expect(ids).toEqual([['one'], ['one', 'two']]);
  });
});
