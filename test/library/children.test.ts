import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Crore, Fatal, open } from '../../dist/index.js';
import { ALL_STORES, type TestStore } from '../support/stores.js';
import { until } from '../support/wait.js';

describe.each(ALL_STORES)('children on %s', (_name, fresh) => {
  let store: TestStore;
  let crore: Crore;
  beforeAll(async () => {
    store = await fresh();
    crore = await open(store.url, { logger: false });
  });
  afterAll(async () => {
    await crore.close();
    await store.stop();
  });

  it('run while the parent holds no slot, and give it their results', async () => {
    const parents = crore.queue<number, number>('sums');
    const squares = crore.queue<number, number>('squares');
    // One slot for all of them: a parent that kept its slot would wait for ever.
    const workers = [
      parents.work(
        async (job) => {
          const children = await job.children<number>();
          if (children.length > 0) return children.reduce((sum, { result }) => sum + result!, 0);
          await job.addChildren(
            Array.from({ length: job.payload }, (_x, i) => ({ queue: i % 2 === 0 ? 'squares' : squares, payload: i })),
          );
          return job.waitForChildren();
        },
        { concurrency: 1 },
      ),
      squares.work(async ({ payload }) => payload * payload),
    ];
    const jobs = await Promise.all([5, 3, 1].map((n) => parents.add(n)));
    expect(await Promise.all(jobs.map((job) => job.finished()))).toEqual([30, 5, 0]);
    const view = await jobs[0]!.get();
    expect(view).toMatchObject({
      attempt: 1,
      children: [{ queue: 'squares', id: `${jobs[0]!.id}.0` }, {}, {}, {}, {}],
    });
    expect(await squares.get(`${jobs[0]!.id}.4`)).toMatchObject({ parent: { queue: 'sums', id: jobs[0]!.id } });
    await Promise.all(workers.map((worker) => worker.close()));
  });

  it('can be added to the queue of the parent, in several steps', async () => {
    const queue = crore.queue<string, unknown>('steps');
    const worker = queue.work(
      async (job) => {
        if (job.payload !== 'root') return job.payload.toUpperCase();
        const children = await job.children<string>();
        if (children.length < 3) {
          await job.addChildren([{ payload: `child ${children.length}` }]);
          return job.waitForChildren();
        }
        return children.map(({ id, result }) => [id, result]);
      },
      { concurrency: 1 },
    );
    const root = await queue.add('root', { id: 'root' });
    expect(await root.finished()).toEqual([
      ['root.0', 'CHILD 0'],
      ['root.1', 'CHILD 1'],
      ['root.2', 'CHILD 2'],
    ]);
    await worker.close();
  });

  it('are not added twice when the parent has to run again before it waits', async () => {
    const [parents, parts] = [crore.queue<null, number>('again'), crore.queue<number, number>('again-parts')];
    let runs = 0;
    const workers = [
      parents.work(async (job) => {
        const children = await job.children();
        if (children.length > 0) return children.length;
        await job.addChildren([
          { queue: parts, payload: 1 },
          { queue: parts, payload: 2 },
        ]);
        if (++runs === 1) throw new Error('after the children were added');
        return job.waitForChildren();
      }),
      parts.work(async ({ payload }) => payload),
    ];
    const job = await parents.add(null, { backoff: 1 });
    expect(await job.finished()).toBe(2);
    expect((await parts.count()).done).toBe(2);
    await Promise.all(workers.map((worker) => worker.close()));
  });

  it('that fail make the parent dead, unless it asked only for their end', async () => {
    const [parents, parts] = [
      crore.queue<'success' | 'finished', unknown>('strict'),
      crore.queue<number>('strict-parts'),
    ];
    const workers = [
      parents.work(async (job) => {
        const children = await job.children();
        if (children.length > 0) return children.map(({ state, error }) => [state, error]);
        await job.addChildren([
          { queue: parts, payload: 1, on: job.payload },
          { queue: parts, payload: 2, on: job.payload },
        ]);
        return job.waitForChildren();
      }),
      parts.work(async ({ payload }) => {
        if (payload === 2) throw new Fatal('not two');
      }),
    ];
    const tolerant = await parents.add('finished');
    expect(await tolerant.finished()).toEqual([
      ['done', null],
      ['dead', 'Fatal: not two'],
    ]);
    const strict = await parents.add('success');
    await expect(strict.finished()).rejects.toMatchObject({
      code: 'JOB_DEAD',
      message: expect.stringContaining('a child ended dead'),
    });
    await Promise.all(workers.map((worker) => worker.close()));
  });

  it('that are wrong are refused by name before any is added', async () => {
    const queue = crore.queue<string, unknown>('wrong');
    const asked: Record<string, (job: Parameters<Parameters<typeof queue.work>[0]>[0]) => unknown> = {
      nothing: (job) => job.waitForChildren(),
      noArray: (job) => job.addChildren('x' as never),
      noPayload: (job) => job.addChildren([{ queue: 'a' } as never]),
      badName: (job) => job.addChildren([{ payload: 1, queue: '' }]),
      badPolicy: (job) => job.addChildren([{ payload: 1, on: 'maybe' as never }]),
      badOption: (job) => job.addChildren([{ payload: 1, attempt: 3 } as never]),
    };
    const worker = queue.work(async (job) => {
      try {
        await asked[job.payload]!(job);
      } catch (error) {
        return (error as Error).message;
      }
      return 'accepted';
    });
    const answer = async (payload: string) => (await queue.add(payload)).finished();
    expect(await answer('nothing')).toContain('no children were added');
    expect(await answer('noArray')).toContain('addChildren takes an array');
    expect(await answer('noPayload')).toContain('item 0 must be an object with a payload');
    expect(await answer('badName')).toContain('item 0');
    expect(await answer('badPolicy')).toContain('on must be one of');
    expect(await answer('badOption')).toContain("'attempt'");
    await worker.close();
  });

  it('of a raw task cannot be', async () => {
    const queue = crore.queue('raw-children');
    let told: unknown;
    const worker = queue.work(async (job) => {
      told = await job.addChildren([{ payload: 1 }]).catch((error: Error) => error.message);
      return undefined;
    });
    await queue.push('task');
    await until('the handler was told', () => told !== undefined);
    expect(told).toContain('raw task');
    await worker.close();
  });

  it('have results that the codec of their queue has encoded', async () => {
    const codec = {
      encode: (bytes: Uint8Array) => Buffer.from(bytes).reverse(),
      decode: (bytes: Uint8Array) => Buffer.from(bytes).reverse(),
    };
    const [parents, parts] = [
      crore.queue<null, unknown>('coded'),
      crore.queue<number, number>('coded-parts', { codec }),
    ];
    const workers = [
      parents.work(async (job) => {
        const [child] = await job.children();
        if (child) return child.result;
        await job.addChildren([{ queue: parts, payload: 21 }]);
        return job.waitForChildren();
      }),
      parts.work(async ({ payload }) => 2 * payload),
    ];
    expect(await (await parents.add(null)).finished()).toBe(42);
    await Promise.all(workers.map((worker) => worker.close()));
  });

  it('the results of needed jobs reach the handler, however soon their records would go', async () => {
    const queue = crore.queue<string, unknown>('needing');
    const other = crore.queue<string, string>('needed');
    const up = await other.add('a', { keep: { for: 0 } });
    const job = await queue.add('b', { needs: [{ queue: 'needed', id: up.id }] });
    const workers = [
      other.work(async ({ payload }) => `result of ${payload}`),
      queue.work(async (running) => running.needs()),
    ];
    expect(await job.finished()).toEqual([{ queue: 'needed', id: up.id, state: 'done', result: 'result of a' }]);
    expect(await (await queue.add('c')).finished()).toEqual([]);
    await Promise.all(workers.map((worker) => worker.close()));
  });
});

describe.each(ALL_STORES)('trees on %s', (_name, fresh) => {
  let store: TestStore;
  let crore: Crore;
  beforeAll(async () => {
    store = await fresh();
    crore = await open(store.url, { logger: false });
  });
  afterAll(async () => {
    await crore.close();
    await store.stop();
  });

  const item = (id: string, children: ReturnType<typeof tree>[] = []) => ({
    queue: `t-${id[0]}`,
    id,
    payload: id,
    children,
  });
  const tree = (
    id: string,
    children: unknown[] = [],
  ): { queue: string; id: string; payload: string; children: never[] } => item(id, children as never) as never;
  const family = (root: string) =>
    tree(root, [tree(`b${root}`, [tree(`c${root}1`), tree(`c${root}2`)]), tree(`d${root}`)]);

  it('run from the leaves to the root, with the results of each level', async () => {
    const order: string[] = [];
    const workers = ['a', 'b', 'c', 'd'].map((name) =>
      crore.queue<string, string>(`t-${name}`).work(async (job) => {
        order.push(job.id);
        const below = (await job.needs<string>()).map(({ result }) => result);
        return `${job.payload}(${below.join()})`;
      }),
    );
    const root = await crore.addTree(family('a1'));
    expect(await root.finished()).toBe('a1(ba1(ca11(),ca12()),da1())');
    expect(order.at(-1)).toBe('a1');
    expect(order.indexOf('ba1')).toBeGreaterThan(Math.max(order.indexOf('ca11'), order.indexOf('ca12')));
    await Promise.all(workers.map((worker) => worker.close()));
  });

  it('are shown, cancelled and removed as a whole, and leave other jobs alone', async () => {
    const queue = crore.queue('t-a');
    await crore.addTree(family('a2'));
    const shared = await crore.queue('t-c').add('shared', { id: 'shared' });
    await queue.add('x', { id: 'ax', needs: [{ queue: 't-c', id: shared.id }] });
    const shown = (await queue.tree('a2'))!;
    expect(shown.job).toMatchObject({ id: 'a2', state: 'blocked' });
    expect(shown.children.map(({ job, children }) => [job.id, children.map((child) => child.job.id)])).toEqual([
      ['ba2', ['ca21', 'ca22']],
      ['da2', []],
    ]);
    expect(await queue.tree('none')).toBeUndefined();
    // A job that is needed, but not a child, is not part of the tree.
    expect((await queue.tree('ax'))!.children).toEqual([]);
    expect(await queue.cancelTree('a2')).toBe(5);
    expect((await queue.tree('a2'))!.children.map(({ job }) => job.state)).toEqual(['cancelled', 'cancelled']);
    expect(await queue.removeTree('a2')).toBe(5);
    expect(await queue.tree('a2')).toBeUndefined();
    expect(await crore.queue('t-c').get('ca21')).toBeUndefined();
    expect((await shared.get())!.state).toBe('ready');
    await crore.addTree(family('a3'));
    expect(await queue.removeTree('a3')).toBe(5);
  });

  it('that cannot be added as a whole leave nothing to run', async () => {
    await crore.queue('t-b').add('taken', { id: 'ba4' });
    await expect(crore.addTree(family('a4'))).rejects.toMatchObject({ message: expect.stringContaining("'ba4'") });
    expect((await crore.queue('t-c').get('ca41'))!.state).toBe('cancelled');
    expect(await crore.queue('t-a').get('a4')).toBeUndefined();
    await expect(crore.addTree({ queue: '', payload: 1 })).rejects.toMatchObject({ code: 'BAD_NAME' });
    await expect(
      crore.addTree({ queue: 'q', payload: 1, children: [{ queue: 'q', payload: 1, on: 'never' as never }] }),
    ).rejects.toMatchObject({ message: expect.stringContaining('addTree, child 0: on') });
    await expect(crore.addTree({ queue: 'q', payload: 1, children: {} as never })).rejects.toMatchObject({
      message: expect.stringContaining('children must be an array'),
    });
    let deep: Parameters<Crore['addTree']>[0] = { queue: 'q', payload: 0 };
    for (let i = 0; i < 2_000; i++) deep = { queue: 'q', payload: i, children: [deep] };
    await expect(crore.addTree(deep)).rejects.toMatchObject({ message: expect.stringContaining('levels') });
  });
});
