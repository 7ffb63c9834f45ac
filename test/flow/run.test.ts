import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import { type Asked, flow, map, type Node, node, run, sh } from '../../dist/flow/index.js';
import { Fatal, open } from '../../dist/index.js';
import { ALL_STORES, type TestStore } from '../support/stores.js';
import { deferred, until } from '../support/wait.js';
import { place } from './support.js';

const STORES: [string, () => Promise<TestStore | undefined>][] = [['no store', async () => undefined], ...ALL_STORES];

describe.each(STORES)('a flow on %s', (_name, fresh) => {
  let place: TestStore | undefined;
  let flows = 0;
  beforeAll(async () => {
    place = await fresh();
  });
  afterAll(() => place?.stop());
  const store = () => place?.url;
  const name = () => `flow-${++flows}`;

  it('respects the order of any graph and runs each node exactly once', async () => {
    const dag = fc.integer({ min: 2, max: 25 }).chain((size) =>
      fc.record({
        edges: fc.array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { maxLength: 60 }),
        size: fc.constant(size),
        slow: fc.array(fc.boolean(), { minLength: size, maxLength: size }),
        concurrency: fc.integer({ min: 1, max: 6 }),
      }),
    );
    await fc.assert(
      fc.asyncProperty(dag, async ({ edges, size, slow, concurrency }) => {
        const ups = Array.from({ length: size }, (_, i) => {
          const named = edges.filter(([a, b]) => a !== b && Math.max(a, b) === i);
          return [...new Set(named.map(([a, b]) => `n${Math.min(a, b)}`))];
        });
        const ended: string[] = [];
        const nodes: Record<string, Node<unknown, never>> = {};
        ups.forEach((needs, i) => {
          nodes[`n${i}`] = node({ needs }, async (given: Record<string, unknown>) => {
            if (slow[i]) await new Promise((resolve) => setImmediate(resolve));
            for (const need of needs)
              if (!ended.includes(need) || given[need] !== Number(need.slice(1))) throw new Error(`${need} is missing`);
            ended.push(`n${i}`);
            return i;
          });
        });
        const report = await run(flow(nodes, { name: name() }), { concurrency, store: store() });
        expect(report.errors).toEqual({});
        expect(report.counts).toMatchObject({ done: size, failed: 0 });
        expect([...ended].sort()).toEqual(Object.keys(nodes).sort());
      }),
      { numRuns: 25 },
    );
  });

  it('passes results on, renames them, maps over a list, and waits for all parts', async () => {
    const list = node(() => [1, 2, 3]);
    const twice = map(list, (item) => item * 2);
    const sum = node({ needs: { numbers: twice } }, ({ numbers }) => numbers.reduce((a, b) => a + b, 0));
    const text = node({ needs: ['sum'] }, ({ sum }: { sum: number }) => `sum is ${sum}`);
    const shell = sh('echo "$CRORE_RESULT_sum and $CRORE_NEEDS"; echo \'{"n":1}\'', { needs: ['sum'] });
    const report = await run(flow({ list, twice, sum, text, shell }, { name: name() }), { store: store() });
    expect(report.results).toEqual({ list: [1, 2, 3], twice: [2, 4, 6], sum: 12, text: 'sum is 12', shell: { n: 1 } });
    expect(report.state).toBe('done');
  });

  it('stops at a failure, except for nodes that need any end; continues with keepGoing', async () => {
    const build = (extra: Asked = {}) => {
      const nodes = {
        a: node(() => 1),
        bad: node({ needs: ['a'], ...extra }, (_: { a: number }) => {
          throw new Error('broken');
        }),
        after: node({ needs: { bad: 'finished' } }, () => 'cleaned'),
        skipped: node({ needs: ['bad'] }, (_: { bad: never }) => 1),
        deeper: node({ needs: ['skipped'] }, (_: { skipped: number }) => 1),
        late: node({ needs: { after: 'finished', other: 'success' } }, () => 'late'),
        other: node({ needs: ['a'], priority: -1 }, (_: { a: number }) => 1),
      };
      return flow(nodes, { name: name() });
    };
    const fast = await run(build(), { store: store(), concurrency: 1 });
    expect(fast.states).toEqual({
      a: 'done',
      bad: 'failed',
      after: 'done',
      skipped: 'skipped',
      deeper: 'skipped',
      late: 'cancelled',
      other: 'cancelled',
    });
    expect(fast.errors).toEqual({ bad: 'broken' });
    const going = await run(build(), { store: store(), concurrency: 1, keepGoing: true });
    expect(going.states).toEqual({
      a: 'done',
      bad: 'failed',
      after: 'done',
      skipped: 'skipped',
      deeper: 'skipped',
      late: 'done',
      other: 'done',
    });
    expect(going.state).toBe('failed');
  });

  it('retries after nodes that were ready before; Fatal is not retried', async () => {
    const order: string[] = [];
    let tries = 0;
    const nodes = {
      flaky: node({ retries: 2, backoff: 0, priority: 9 }, () => {
        order.push('flaky');
        if (++tries < 3) throw new Error('not yet');
        return tries;
      }),
      hopeless: node({ retries: 5, backoff: 0 }, () => {
        order.push('hopeless');
        throw new Fatal('never');
      }),
      b: node(() => void order.push('b')),
      c: node(() => void order.push('c')),
    };
    const report = await run(flow(nodes, { name: name() }), { store: store(), concurrency: 1, keepGoing: true });
    expect(report.results.flaky).toBe(3);
    expect(report.states.hopeless).toBe('failed');
    expect(order.filter((id) => id === 'hopeless')).toHaveLength(1);
    // The timer of a retry may fire between two nodes, but the retry never runs before nodes that were already ready.
    expect(order[0]).toBe('flaky');
    expect(order.slice(-2)).toEqual(['flaky', 'flaky']);
  });

  it('ends on a failure even while other nodes await a retry or are parts of a list', async () => {
    const fail = () => {
      throw new Error('broken');
    };
    const list = node(() => [1, 2, 3, 4]);
    const nodes = {
      list,
      quick: node({ retries: 3, backoff: 0, needs: { list } }, fail),
      slow: node({ retries: 3, backoff: 20, needs: { list } }, fail),
      parts: map(list, { retries: 1, backoff: 5 }, async (item) => (item === 3 ? fail() : item)),
      bad: node({ needs: { list }, priority: -1 }, fail),
      after: node({ needs: { parts: 'finished', quick: 'finished' } }, () => 'after'),
    };
    for (const concurrency of [1, 2, 5]) {
      const report = await run(flow(nodes, { name: name() }), { store: store(), concurrency });
      expect(report.state).toBe('failed');
      for (const state of Object.values(report.states))
        expect(['done', 'failed', 'skipped', 'cancelled']).toContain(state);
      expect(report.results.after).toBe('after');
    }
  });

  it('ends at a timeout and when aborted', async () => {
    const late = node(
      { timeout: 30 },
      (_needs, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    );
    const deaf = node({ timeout: 30 }, () => new Promise(() => {}));
    const slow = sh('sleep 60', { timeout: 50 });
    const report = await run(flow({ late, deaf, slow }, { name: name() }), { store: store(), keepGoing: true });
    expect(report.states).toEqual({ late: 'failed', deaf: 'failed', slow: 'failed' });
    expect(report.errors.slow).toContain('longer than 0.05 s');
    const controller = new AbortController();
    const started = deferred();
    const hanging = flow(
      {
        one: node(() => new Promise(() => started.resolve())),
        two: node({ needs: ['one'] }, (_: { one: unknown }) => 1),
      },
      { name: name() },
    );
    const running = run(hanging, { store: store(), signal: controller.signal });
    await started.promise;
    controller.abort();
    expect((await running).states).toEqual({ one: 'cancelled', two: 'cancelled' });
  });

  it('succeeds when empty', async () => {
    expect(await run(flow({}, { name: name() }), { store: store() })).toMatchObject({
      state: 'done',
      counts: { done: 0 },
    });
  });

  it('resumes where it ended: finished nodes do not run again', async () => {
    if (!store()) return;
    const calls: string[] = [];
    let broken = true;
    const call = <T>(id: string, value: T): T => {
      calls.push(id);
      return value;
    };
    const list = node(() => call('list', [1, 2, 3]));
    const parts = map(list, (item) => {
      if (item === 2 && broken) throw new Error('broken');
      return call(`part ${item}`, item);
    });
    const last = node({ needs: { parts } }, (needs) => call('last', needs.parts.length));
    const made = flow({ list, parts, last }, { name: name() });
    const first = await run(made, { store: store(), keepGoing: true });
    expect(first.states).toEqual({ list: 'done', parts: 'failed', last: 'skipped' });
    broken = false;
    const second = await run(made, { store: store(), resume: true });
    expect(second).toMatchObject({ state: 'done', results: { parts: [1, 2, 3], last: 3 } });
    expect([...calls].sort()).toEqual(['last', 'list', 'part 1', 'part 2', 'part 3']);
    const third = await run(made, { store: store(), resume: true });
    expect(third).toMatchObject({ state: 'done', results: { parts: [1, 2, 3], last: 3 } });
    expect(calls.filter((id) => id === 'list')).toHaveLength(1); // the flow is done: nothing runs again
  });

  it('fails a node whose result cannot be serialized, where it has to be', async () => {
    const report = await run(flow({ big: node(() => 1n), loop: node(() => ({ f: () => 1 })) }, { name: name() }), {
      store: store(),
      keepGoing: true,
    });
    expect(report.states.big).toBe(store() ? 'failed' : 'done');
    expect(report.states.loop).toBe('done');
  });

  it('runs a node as a job of any queue', async () => {
    const url = store();
    if (!url) return;
    const crore = await open(url, { onError: () => {} });
    crore
      .queue<{ to: string; needs: { a: number } }>('mails')
      .work(async ({ payload }) => ({ sent: payload.to, a: payload.needs.a }));
    crore.queue('bad').work(async () => {
      throw new Fatal('no such address');
    });
    const { job } = await import('../../dist/flow/index.js');
    const a = node(() => 7);
    const mail = job<{ sent: string }>('mails', { to: 'ops' }, { needs: ['a'] });
    const bad = job('bad', {}, { needs: ['mail'] });
    const report = await run(flow({ a, mail, bad }, { name: name() }), { store: url, keepGoing: true });
    expect(report.results.mail).toEqual({ sent: 'ops', a: 7 });
    expect(report.errors.bad).toContain('no such address');
    await crore.close();
  });
});

describe('the first failure', () => {
  it('cancels nodes that await a retry, and pending parts', async () => {
    const started: string[] = [];
    const say = (id: string, fails: boolean) => () => {
      started.push(id);
      if (fails) throw new Error(id);
    };
    const rests = node({ retries: 5, backoff: '1h' }, say('rests', true));
    const list = node(() => [1, 2, 3, 4]);
    const each = map(list, async (item) => {
      started.push(`each ${item}`);
      if (item === 2) throw new Error('two');
    });
    const after = node({ needs: { each: 'finished' } }, say('after', false));
    const { state, states, errors } = await run(flow({ rests, list, each, after }), { concurrency: 1 });
    expect(state).toBe('failed');
    expect(started).toEqual(['rests', 'each 1', 'each 2', 'after']);
    expect(states).toEqual({ rests: 'cancelled', list: 'done', each: 'failed', after: 'done' });
    expect(errors).toEqual({ each: 'each[1]: two' });
  });

  it('lets all parts run with keepGoing', async () => {
    const ran: number[] = [];
    const list = node(() => [1, 2, 3]);
    const each = map(list, { retries: 1, backoff: 1 }, (item, { attempt }) => {
      ran.push(item);
      if (item === 2) throw new Error(`two, ${attempt}`);
    });
    const { errors } = await run(flow({ list, each }), { concurrency: 1, keepGoing: true });
    expect(ran).toEqual([1, 2, 3, 2]);
    expect(errors).toEqual({ each: 'each[1]: two, 2' });
  });
});

describe('a typed flow', () => {
  it('infers the types of upstream results', () => {
    const a = node(() => 1);
    const s = node(async () => 'text');
    const b = node({ needs: { a, s } }, ({ a, s }) => {
      expectTypeOf(a).toEqualTypeOf<number>();
      expectTypeOf(s).toEqualTypeOf<string>();
      return a > 1;
    });
    const each = map(
      node(() => ['x']),
      (item) => {
        expectTypeOf(item).toEqualTypeOf<string>();
        return item.length;
      },
    );
    expectTypeOf(b).toEqualTypeOf<Node<boolean>>();
    expectTypeOf(each).toEqualTypeOf<Node<number[]>>();
    const made = flow({ a, s, b, c: node({ needs: ['a'] }, ({ a }: { a: number }) => a) });
    expectTypeOf<(typeof made)['results']['b']>().toEqualTypeOf<boolean>();
    // @ts-expect-error a is a number
    flow({ a, c: node({ needs: ['a'] }, ({ a }: { a: string }) => a) });
  });

  it.each([
    [
      'a cycle',
      () => flow({ a: sh('x', { needs: ['b'] }), b: sh('x', { needs: ['a'] }) }),
      /flow, node 'a': dependency cycle: a -> b -> a/,
    ],
    ['an unknown node', () => flow({ a: sh('x', { needs: ['z' as string] }) }), /unknown node 'z'/],
    ['a node of elsewhere', () => flow({ a: sh('x', { needs: { z: sh('y') } }) }), /not part of the flow/],
    ['an unknown option', () => flow({ a: sh('x', { retrys: 1 } as never) }), /unknown key 'retrys'/],
    ['bad retries', () => flow({ a: node({ retries: 1.5 }, () => 1) }), /retries/],
  ])('refuses %s before anything runs', async (_what, make, message) => {
    await expect(run(make() as ReturnType<typeof flow>)).rejects.toThrow(message);
  });

  it('refuses unknown options', async () => {
    await expect(run(flow({}), { paralell: 3 } as never)).rejects.toThrow("unknown option 'paralell'");
    await expect(run(flow({}), { concurrency: 0 })).rejects.toThrow('concurrency');
    await expect(run({} as never)).rejects.toMatchObject({ code: 'BAD_FLOW' });
    await expect(run(flow({ q: (await import('../../dist/flow/index.js')).job('x') }))).rejects.toThrow('--store');
  });
});

describe('a flow held by one runner', () => {
  it('refuses a second runner while the first lives, and can be cancelled from outside', async () => {
    const here = place();
    const { openJournal } = await import('../../dist/flow/journal/open.js');
    const url = `sqlite:${here.dir}/x.db`;
    const hanging = flow({ one: node(() => new Promise(() => {})) }, { name: 'held' });
    const first = run(hanging, { store: url });
    const journal = await openJournal(url);
    const info = (await until('the flow to start', async () => (await journal.list())[0]))!;
    expect(await journal.takeOver(info.id, { host: 'h', pid: 1 }, false)).toBe(false);
    expect(await journal.cancel(info.id)).toBe(true);
    expect((await first).state).toBe('cancelled');
    expect(await journal.cancel(info.id)).toBe(false);
    await journal.close();
  });
});
