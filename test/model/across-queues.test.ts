import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { State } from '../../dist/job/job.js';
import { die, finish } from '../../dist/job/transitions.js';
import { openStore } from '../../dist/store/open.js';
import type { Store } from '../../dist/store/store.js';
import { newJob, settlementOf } from '../support/jobs.js';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';

/** Jobs that depend on each other across queues, in cycles of queues too. CRORE_MODEL_RUNS=500 runs more histories. */
const numRuns = Math.ceil(Number(process.env.CRORE_MODEL_RUNS ?? 200) / 8);
const seed = process.env.CRORE_MODEL_SEED === undefined ? undefined : Number(process.env.CRORE_MODEL_SEED);
const QUEUES = 5;
const LEASE = 60_000;

interface Plan {
  queue: number;
  /** How far back in the list the jobs it needs are. */
  needs: { back: number; on: 'success' | 'finished' }[];
}
type How = 'done' | 'dead' | 'cancelled';
type Step = { do: 'add'; plan: Plan } | { do: 'end'; which: number; how: How } | { do: 'sweep'; queue: number };

const plan = fc.record({
  queue: fc.nat(QUEUES - 1),
  needs: fc.array(fc.record({ back: fc.nat(8), on: fc.constantFrom('success' as const, 'finished' as const) }), {
    maxLength: 4,
  }),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('add' as const), plan }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.nat(100),
      how: fc.constantFrom<How>('done', 'done', 'dead', 'cancelled'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const), queue: fc.nat(QUEUES - 1) }) },
);

interface Node {
  queue: number;
  id: string;
  needs: { node: Node; on: 'success' | 'finished' }[];
  end?: How;
}

/** The expected state of a job once all updates have arrived. */
function stateOf(node: Node): State {
  if (node.end) return node.end;
  const ups = node.needs.map(({ node: up, on }) => ({ state: stateOf(up), on }));
  if (ups.some(({ state, on }) => on === 'success' && (state === 'dead' || state === 'cancelled'))) return 'cancelled';
  return ups.every(({ state }) => state === 'done' || state === 'dead' || state === 'cancelled') ? 'ready' : 'blocked';
}

describe('dependencies across queues', () => {
  let redis: RedisServer;
  let stores: [string, Store][];
  let runs = 0;

  beforeAll(async () => {
    redis = await RedisServer.start();
    stores = [
      ['sqlite', await openStore('sqlite::memory:', { timeout: 10_000 })],
      ['redis', await openStore(redis.url, { timeout: 10_000 })],
    ];
  });
  afterAll(async () => {
    for (const [, store] of stores) await store.close();
    await redis.stop();
  });

  const names = (run: number) => Array.from({ length: QUEUES }, (_x, i) => `across-${run}-${i}`);

  async function play(store: Store, queues: string[], steps: readonly Step[]): Promise<void> {
    const nodes: Node[] = [];
    for (const queue of queues) await store.join(queue, 'w', { lease: LEASE, info: '' });
    const agree = () =>
      until(
        () => `${JSON.stringify(nodes.map((node) => [node.id, stateOf(node)]))} everywhere`,
        async () => {
          for (const node of nodes) {
            const [job] = await store.get(queues[node.queue]!, [node.id]);
            if (job?.state !== stateOf(node)) return false;
          }
          return true;
        },
        { within: 5_000, every: 2 },
      );
    for (const one of steps) {
      if (one.do === 'add') await add(store, queues, nodes, one.plan);
      else if (one.do === 'sweep') await store.sweep(queues[one.queue]!, { lease: LEASE, every: 0 });
      else await endOne(store, queues, nodes, one.which, one.how);
      await agree();
    }
    for (let left = nodes.length; left > 0 && nodes.some((node) => stateOf(node) === 'ready'); left--) {
      await endOne(store, queues, nodes, 0, 'done');
      await agree();
    }
    expect(nodes.filter((node) => stateOf(node) === 'blocked')).toEqual([]);
  }

  it('resolve as the graph requires, on every store, in any order of adds, ends and sweeps', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40, size: 'max' }), async (steps) => {
        runs += 1;
        for (const [, store] of stores) await play(store, names(runs), steps);
      }),
      { numRuns, seed, endOnFailure: true },
    );
  }, 120_000);

  it('leave nothing to do when everything has ended: no more scripts run', async () => {
    const scripts = async () => (await redis.calls('evalsha')) + (await redis.calls('eval'));
    await until('no more scripts run', async () => {
      const before = await scripts();
      await new Promise((resolve) => setTimeout(resolve, 100)); // enough time for a loop to run thousands of them
      return (await scripts()) === before;
    });
    const left = (await redis.client.keys('*')).filter((key) => /:(outbox|deps:.*|downs|edges|blocked)$/.test(key));
    expect(left).toEqual([]);
  });
});

async function add(store: Store, queues: string[], nodes: Node[], { queue, needs }: Plan): Promise<void> {
  const ups = new Map(
    needs.filter(({ back }) => back < nodes.length).map(({ back, on }) => [nodes.at(-1 - back)!, on] as const),
  );
  const node: Node = { queue, id: `j${nodes.length}`, needs: [...ups].map(([up, on]) => ({ node: up, on })) };
  const spec = { needs: node.needs.map(({ node: up, on }) => ({ queue: queues[up.queue]!, id: up.id, on })) };
  await store.add(queues[queue]!, [newJob(node.id, spec.needs.length > 0 ? { spec } : {})]);
  nodes.push(node);
}

/** Ends one of the ready jobs, or cancels any job that has not ended. */
async function endOne(store: Store, queues: string[], nodes: Node[], which: number, how: How): Promise<void> {
  const open = nodes.filter((node) => ['ready', 'blocked'].includes(stateOf(node)));
  if (how === 'cancelled') {
    const node = open[which % Math.max(1, open.length)];
    if (!node) return;
    await store.cancel(queues[node.queue]!, [node.id]);
    node.end = 'cancelled';
    return;
  }
  const ready = open.filter((node) => stateOf(node) === 'ready');
  const chosen = ready[which % Math.max(1, ready.length)];
  if (!chosen) return;
  const queue = queues[chosen.queue]!;
  const { entries } = await store.claim({ queue, worker: 'w', lease: LEASE }, 1);
  const job = entries[0]!.job!;
  const move = how === 'done' ? finish(job) : die(job, 'no');
  await store.settle(queue, [settlementOf(entries[0]!, move)]);
  nodes.find((node) => node.queue === chosen.queue && node.id === job.id)!.end = how;
}
