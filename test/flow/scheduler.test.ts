import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Graph } from '../../dist/flow/graph/graph.js';
import { GraphBuilder } from '../../dist/flow/graph/graph-builder.js';
import {
  CANCELLED,
  DEFAULT_OPTIONS,
  DONE,
  FAILED,
  isEnd,
  type NodeOptions,
  SKIPPED,
} from '../../dist/flow/graph/node-spec.js';
import { computeWeights } from '../../dist/flow/graph/weights.js';
import { NodeScheduler } from '../../dist/flow/run/node-scheduler.js';

type Edge = [number, number, 'success' | 'finished'];

function graphOf(size: number, edges: readonly Edge[], options: Partial<NodeOptions>[] = [], tokens = {}): Graph {
  const draft = new GraphBuilder((id) => id);
  for (let i = 0; i < size; i++)
    draft.node(`n${i}`, { work: { kind: 'shell', run: 'true' }, options: { ...DEFAULT_OPTIONS, ...options[i] } });
  for (const [from, to, policy] of edges) draft.edge(`n${from}`, `n${to}`, policy);
  return draft.finish({ name: 'x', tokens });
}

const dag = fc.integer({ min: 2, max: 30 }).chain((size) =>
  fc.record({
    size: fc.constant(size),
    edges: fc.array(
      fc
        .tuple(fc.nat(size - 1), fc.nat(size - 1), fc.constantFrom('success' as const, 'finished' as const))
        .filter(([a, b]) => a !== b),
      { maxLength: 80 },
    ),
    fails: fc.array(fc.boolean(), { minLength: size, maxLength: size }),
    slots: fc.integer({ min: 1, max: 5 }),
    keepGoing: fc.boolean(),
    seed: fc.nat(1_000_000),
  }),
);

describe('the scheduler', () => {
  it('runs any graph to its end: in order, each node once, all nodes terminal, policies respected', () => {
    fc.assert(
      fc.property(dag, ({ size, edges: any, fails, slots, keepGoing, seed }) => {
        const edges = any.map(([a, b, policy]): Edge => [Math.min(a, b), Math.max(a, b), policy]);
        const graph = graphOf(size, edges);
        const scheduler = new NodeScheduler(graph, computeWeights(graph), slots);
        const running: number[] = [];
        let luck = seed + 1;
        const ran: number[] = [];
        scheduler.begin();
        while (scheduler.open > 0) {
          for (let node = scheduler.next(); node >= 0; node = scheduler.next()) {
            const early = edges.find(([from, to, policy]) => {
              const state = scheduler.states[from]!;
              return to === node && (policy === 'finished' ? !isEnd(state) : state !== DONE);
            });
            if (early) throw new Error(`n${node} ran before n${early[0]} had ended as it needs`);
            running.push(node);
            ran.push(node);
          }
          expect(running.length).toBeGreaterThan(0);
          expect(running.length).toBeLessThanOrEqual(slots);
          luck = (luck * 48_271) % 2_147_483_647;
          const [node] = running.splice(luck % running.length, 1);
          scheduler.free(node!, true);
          scheduler.end(node!, fails[node!] ? FAILED : DONE);
          if (fails[node!] && !keepGoing && !scheduler.stopped) scheduler.stop();
          scheduler.release(node!);
        }
        expect(running).toEqual([]);
        expect(new Set(ran).size).toBe(ran.length);
        for (let node = 0; node < size; node++) {
          const state = scheduler.states[node]!;
          expect([DONE, FAILED, SKIPPED, CANCELLED]).toContain(state);
          expect(ran.includes(node)).toBe(state === DONE || state === FAILED);
          if (keepGoing) expect(state).not.toBe(CANCELLED);
          if (state === SKIPPED) {
            const bad = edges.some(
              ([from, to, policy]) => to === node && policy === 'success' && scheduler.states[from] !== DONE,
            );
            expect(bad).toBe(true);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it('picks by priority, then by the longest remaining path, weighted by recorded seconds if known', () => {
    const edges: Edge[] = [
      [0, 2, 'success'],
      [2, 3, 'success'],
    ];
    const first = (graph: Graph, seconds?: Map<string, number>) => {
      const scheduler = new NodeScheduler(graph, computeWeights(graph, seconds), 1);
      scheduler.begin();
      return scheduler.next();
    };
    expect(first(graphOf(4, edges))).toBe(0);
    expect(
      first(
        graphOf(4, edges),
        new Map([
          ['n1', 100],
          ['n0', 1],
          ['n2', 1],
          ['n3', 1],
        ]),
      ),
    ).toBe(1);
    expect(first(graphOf(4, edges, [{}, { priority: 1 }]))).toBe(1);
  });

  it('prefers, among equal paths, the node further along: it may be the long one of its path', () => {
    const graph = graphOf(5, [[3, 4, 'success']]);
    const scheduler = new NodeScheduler(graph, computeWeights(graph), 1);
    scheduler.begin();
    const order: number[] = [];
    for (let node = scheduler.next(); node >= 0; node = scheduler.next()) {
      order.push(node);
      scheduler.free(node, true);
      scheduler.end(node, DONE);
      scheduler.release(node);
    }
    expect(order).toEqual([3, 4, 0, 1, 2]);
  });

  it('breaks ties by who became ready first, then by the order in the file, across different demands', () => {
    const edges: Edge[] = [
      [0, 5, 'success'],
      [0, 4, 'success'],
      [1, 3, 'success'],
      [1, 2, 'success'],
    ];
    for (const options of [[], [{}, {}, { cpu: 2 }, { cpu: 3 }, { cpu: 4 }, { cpu: 2 }]]) {
      for (const [first, order] of [
        [0, [4, 5, 2, 3]],
        [1, [2, 3, 4, 5]],
      ] as const) {
        const graph = graphOf(6, edges, options);
        const scheduler = new NodeScheduler(graph, computeWeights(graph), 100);
        scheduler.begin();
        expect([scheduler.next(), scheduler.next(), scheduler.next()]).toEqual([0, 1, -1]);
        for (const node of [first, 1 - first]) {
          scheduler.free(node, true);
          scheduler.end(node, DONE);
          scheduler.release(node);
        }
        expect(order.map(() => scheduler.next())).toEqual(order);
      }
    }
  });

  it('respects the available tokens, lets smaller nodes overtake, but never starves a large one', () => {
    const options: Partial<NodeOptions>[] = [
      { cpu: 1 },
      { cpu: 3, priority: 5 },
      ...Array.from({ length: 200 }, () => ({ cpu: 1 })),
    ];
    const graph = graphOf(202, [], options);
    const scheduler = new NodeScheduler(graph, computeWeights(graph), 3);
    scheduler.begin();
    expect(scheduler.next()).toBe(1); // it needs all three slots
    expect(scheduler.next()).toBe(-1);
    const other = new NodeScheduler(
      graphOf(202, [], options),
      Float64Array.from({ length: 202 }, (_, i) => (i === 0 ? 9 : i === 1 ? 5 : 1)),
      3,
    );
    other.begin();
    expect(other.next()).toBe(0);
    const queue: number[] = [];
    let started = 0;
    for (;;) {
      for (let node = other.next(); node >= 0; node = other.next()) {
        started++;
        queue.push(node);
      }
      if (queue.includes(1)) break;
      const node = queue.shift() ?? 0;
      other.free(node, true);
      other.end(node, DONE);
      other.release(node);
    }
    expect(started).toBeLessThan(100);
  });

  it('counts tokens of any name, and gives all of them to a node that asks for more than exist', () => {
    const options = [{ tokens: { gpu: 1 } }, { tokens: { gpu: 1 } }, { tokens: { gpu: 9 } }, {}];
    const scheduler = new NodeScheduler(graphOf(4, [], options, { gpu: 1 }), new Float64Array(4), 10);
    scheduler.begin();
    const started = [scheduler.next(), scheduler.next(), scheduler.next()];
    expect(started.slice(0, 2).sort()).toEqual([0, 3]);
    expect(started[2]).toBe(-1);
    scheduler.free(0, true);
    scheduler.end(0, DONE);
    expect(scheduler.next()).toBe(1);
  });
});
