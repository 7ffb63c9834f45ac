import { describe, expect, expectTypeOf, it } from 'vitest';
import { Flow, flow, job, map, node, run, sh } from '../../dist/flow/index.js';

/** `tsc -p test` checks the lines below each comment that expects an error; here they are built but not run. */
describe('node ids in a flow', () => {
  const a = node(() => 1);
  const list = node(() => ['x', 'y']);

  it('must exist', () => {
    // @ts-expect-error there is no node 'z': nothing else reports it if the function takes no arguments
    flow({ a, b: node({ needs: ['z'] }, () => 1) });
    // @ts-expect-error one of the two exists
    flow({ a, b: node({ needs: ['a', 'z'] }, ({ a }: { a: number; z: number }) => a) });
    // @ts-expect-error with a policy
    flow({ a, b: node({ needs: { z: 'finished' } }, () => 1) });
    // @ts-expect-error for a command
    flow({ a, b: sh('x', { needs: ['z'] }) });
    // @ts-expect-error for a command, with a policy
    flow({ a, b: sh('x', { needs: { a: 'success', z: 'finished' } }) });
    // @ts-expect-error for a job
    flow({ a, b: job('mails', null, { needs: ['z'] }) });
    // @ts-expect-error for a list
    flow({ a, b: map('z', () => 1) });
    // @ts-expect-error for a list of a command
    flow({ a, b: sh('x', { map: 'z' }) });
    const good = flow({
      a,
      list,
      b: node({ needs: ['a'] }, () => 1),
      c: node({ needs: { a, list: 'finished' } }, ({ a, list }) => {
        expectTypeOf(a).toEqualTypeOf<number>();
        expectTypeOf(list).toEqualTypeOf<unknown>();
      }),
      d: sh('x', { needs: ['a', 'b'], map: 'list' }),
      e: job('mails', null, { needs: { d: 'finished' } }),
      f: map('list', () => 1),
      // Where the result type is given explicitly, ids are checked when the flow is run.
      g: sh<string>('x', { needs: ['a'] }),
    });
    expectTypeOf<(typeof good)['results']['f']>().toEqualTypeOf<number[]>();
    expectTypeOf<(typeof good)['results']['g']>().toEqualTypeOf<string>();
    expect(good.graph().ids).toHaveLength(8);
  });

  it('must have results of the types that the function takes', () => {
    // @ts-expect-error a is a number
    flow({ a, b: node({ needs: ['a'] }, ({ a }: { a: string }) => a) });
    flow({ a, b: node({ needs: ['a'] }, ({ a }: { a: number | string }) => a) });
  });
});

describe('a chain', () => {
  it('infers the types of results from their ids', async () => {
    const chain = flow()
      .node('a', () => 20)
      .node('b', ['a'], ({ a }) => {
        expectTypeOf(a).toEqualTypeOf<number>();
        return String(a + 1);
      })
      .node('list', { a: 'success', b: 'finished' }, { retries: 1 }, async ({ a, b }) => {
        expectTypeOf(b).toEqualTypeOf<string | undefined>();
        return [a, Number(b)];
      })
      .map('halves', 'list', { cpu: 1 }, (item) => {
        expectTypeOf(item).toEqualTypeOf<number>();
        return { half: item / 2 };
      })
      .add('shown', sh<string>('echo "$CRORE_RESULT_b"', { needs: ['b'] }))
      .node('all', ['halves', 'shown'], ({ halves, shown }) => {
        expectTypeOf(halves).toEqualTypeOf<{ half: number }[]>();
        expectTypeOf(shown).toEqualTypeOf<string>();
        return halves.map(({ half }) => half);
      });
    expectTypeOf<(typeof chain)['results']['all']>().toEqualTypeOf<number[]>();
    const { results, state } = await run(chain);
    expectTypeOf(results.b).toEqualTypeOf<string | undefined>();
    expect({ state, ...results }).toMatchObject({ state: 'done', b: '21', shown: 21, all: [10, 10.5] });
  });

  it('rejects unknown ids and wrong types at compile time', () => {
    const one = flow().node('a', () => 1);
    // @ts-expect-error there is no 'z'
    one.node('b', ['z'], () => 1);
    // @ts-expect-error the function takes a number
    one.node('b', ['a'], ({ a }: { a: string }) => a);
    // @ts-expect-error the node does not need 'a'
    one.node('b', [], ({ a }) => a);
    // @ts-expect-error there is no 'z' to map over
    one.map('b', 'z', () => 1);
    // @ts-expect-error there is no 'z' for a command to need
    one.add('b', sh('x', { needs: ['z'] }));
    // @ts-expect-error a exists already
    expect(() => one.node('a', () => 2)).toThrow("duplicate node 'a'");
  });

  it('is an ordinary flow: validated by the same rules, and immutable', async () => {
    const start = flow({ a: node(() => 1) }, { name: 'named' });
    const [two, three] = [start.node('b', ['a'], () => 2), start.node('b', ['a'], () => 3)];
    expect([start, two, three].map(({ nodes }) => Object.keys(nodes))).toEqual([['a'], ['a', 'b'], ['a', 'b']]);
    expect(two.graph().name).toBe('named');
    expect((await run(three)).results).toEqual({ a: 1, b: 3 });
    expect(flow()).toBeInstanceOf(Flow);
    expect(flow().graph().ids).toEqual([]);
    const bad = flow().node('a', ['z'] as never, () => 1);
    expect(() => bad.graph()).toThrow("unknown node 'z'");
    expect(() =>
      flow()
        .node('a', [], { retrys: 1 } as never, () => 1)
        .graph(),
    ).toThrow("unknown key 'retrys'");
    expect(() => flow().node('a', undefined as never)).toThrow('node needs a function');
  });
});
